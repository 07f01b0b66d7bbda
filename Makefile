# `make` or `make help` lists what there is. What a target does stands in .ci/stages, one function a stage.
.DEFAULT_GOAL := help
.PHONY: help test check race short demo model sim soak fuzz format clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: export PAWL_REQUIRE_ALL := 1
test: ## everything that must pass before a change lands; fetches what it needs
	@.ci/stages setup build check test-core test-sqlite test-postgres test-etcd test-command test-failpoints test-soak model race demo

check: ## format, vet, staticcheck, the rules of the architecture, the contract map
	@.ci/stages check

race: ## the race detector, where goroutines share memory
	@.ci/stages race

short: ## the tests in short form, with Go alone, telling what they skipped and why
	@.ci/stages short

demo: ## the double credit, and its absence, in real processes
	@.ci/stages demo

model: ## the protocol in a model checker: its properties hold, every mutation fails; installs spin where it can
	@.ci/stages model

sim: ## the simulator for PAWL_SIM_STEPS steps (default 10000000), every rule checked after each
	@.ci/stages sim

soak: ## PAWL_SOAK grants (default 2000) through two processes that are killed and stopped; PAWL_SEED plans another run
	@.ci/stages setup soak

fuzz: ## every fuzz target for PAWL_FUZZTIME (default 5m)
	@.ci/stages fuzz

format: ## rewrite what is not formatted
	@.ci/stages --format

clean: ## remove all that these targets made, fetched engines included
	rm -rf bin .cache
