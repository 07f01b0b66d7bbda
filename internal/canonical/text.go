package canonical

import (
	"unicode/utf16"
	"unicode/utf8"
)

// faultInText finds U+0000 and noncharacters in a quoted JSON string. The string
// must be valid JSON already: escapes are complete and surrogates come in pairs.
func faultInText(quoted []byte) (reason Reason, at int) {
	for i := 0; i < len(quoted); {
		character, size := rune(quoted[i]), 1
		switch {
		case character == '\\':
			character, size = unescape(quoted[i:])
		case character >= utf8.RuneSelf:
			character, size = utf8.DecodeRune(quoted[i:])
		}
		switch {
		case character == 0:
			return ReasonNUL, i
		case isNoncharacter(character):
			return ReasonNoncharacter, i
		}
		i += size
	}
	return "", 0
}

// unescape decodes the escape sequence at the start of valid JSON text. Of the
// two-character escapes, none of which stands for a refused character, it returns
// the second character.
func unescape(text []byte) (character rune, size int) {
	if text[1] != 'u' {
		return rune(text[1]), 2
	}
	character = hex4(text[2:6])
	if !utf16.IsSurrogate(character) {
		return character, 6
	}
	return utf16.DecodeRune(character, hex4(text[8:12])), 12
}

// hex4 reads four hexadecimal digits, which must be valid.
func hex4(digits []byte) rune {
	var value rune
	for _, digit := range digits[:4] {
		value <<= 4
		if digit <= '9' {
			value += rune(digit - '0')
		} else {
			value += rune(digit|0x20-'a') + 10
		}
	}
	return value
}

// isNoncharacter reports whether Unicode has set character aside for ever: the
// last two of each plane, and U+FDD0 to U+FDEF.
func isNoncharacter(character rune) bool {
	return character&0xfffe == 0xfffe || 0xfdd0 <= character && character <= 0xfdef
}
