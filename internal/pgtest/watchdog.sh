# watchdog.sh DIRECTORY MARKER: waits for a word on its input. A word means that all was cleaned up; the end of the
# input without one means that the test process is dead, and then everything of DIRECTORY ends and goes.
read -r word && exit 0

alive=yes
while [ -n "$alive" ]; do
	alive=
	for p in /proc/[0-9]*; do
		# Only servers: somebody may be reading the directory's log.
		read -r name <"$p/comm" || continue
		case $name in
		postgres | initdb | pgbouncer) ;;
		*) continue ;;
		esac
		grep -qF -- "$2" "$p/cmdline" || continue
		kill -9 "${p##*/}" && alive=yes
	done
	[ -z "$alive" ] || sleep 0.02
done

# A killed postmaster leaves a shared memory segment; its number is the second word of line 7.
segment=$(sed -n '7s/^ *[0-9][0-9]* *//p' "$1/data/postmaster.pid")
[ -z "$segment" ] || ipcrm -m "$segment"
rm -rf -- "$1"
