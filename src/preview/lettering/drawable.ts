// The prompt in characters that the bundled font (Inter) has: Latin, Greek and Cyrillic. A passage in another script becomes
// the script's name in brackets with its known words, `[Han: fox, snow]`: CJK fonts take 5 MB per weight, and right-to-left
// and Indic scripts need shaping, which opentype.js does not do.

const CONTROLS = /[\p{Cc}\p{Cf}\p{Cs}\p{Cn}\u2028\u2029]+/gu
const EMOJI = /\p{Extended_Pictographic}|\p{Emoji_Modifier}|\p{Regional_Indicator}|\u20e3|\ufe0f/u
const NAMED_SCRIPTS =
  'Han Hangul Arabic Hebrew Devanagari Bengali Tamil Telugu Thai Lao Khmer Myanmar Georgian Armenian Ethiopic Sinhala Tibetan Mongolian Cherokee'
const SCRIPTS = NAMED_SCRIPTS.split(' ').map((name) => ({
  name,
  test: new RegExp(`\\p{Script=${name}}`, 'u'),
}))

/**
 * One line of text of which every character is in the font or is a space.
 * `has` tells whether the font can draw a character (given as a string of one code point), `glossOf` what is understood of
 * a passage that it cannot.
 */
export function drawableText(
  prompt: string,
  has: (character: string) => boolean,
  glossOf: (passage: string) => readonly string[] = () => [],
): string {
  let text = ''
  let passage = ''
  // Spaces and punctuation after a passage, which belong to it if it continues.
  let gap = ''
  const close = () => {
    text += passage === '' ? gap : ` ${named(passage, glossOf)} ${gap}`
    passage = ''
    gap = ''
  }
  for (const character of halfWidth(prompt.normalize('NFC')).replace(/\s+/gu, ' ').replace(CONTROLS, '')) {
    if (character === ' ' || has(character)) {
      if (passage === '' || /[\p{L}\p{N}\p{Co}]/u.test(character)) {
        close()
        text += character
      } else gap += character
      continue
    }
    // A combining mark is dropped with its letter, or alone.
    if (/\p{Mark}/u.test(character)) passage += passage === '' ? '' : character
    else if (!EMOJI.test(character) && !/\p{Co}/u.test(character)) {
      passage += gap + character
      gap = ''
    }
  }
  close()
  return text
    .replace(/ +/g, ' ')
    .replace(/ ([,.;:!?])/g, '$1')
    .trim()
}

/** `[Arabic: fox, snow]`. */
function named(passage: string, glossOf: (passage: string) => readonly string[]): string {
  const name = /[\p{Script=Hiragana}\p{Script=Katakana}]/u.test(passage)
    ? 'Japanese'
    : (SCRIPTS.find(({ test }) => test.test(passage))?.name ?? '…')
  const gloss = glossOf(passage)
  return gloss.length === 0 ? `[${name}]` : `[${name}: ${gloss.join(', ')}]`
}

/** The punctuation of Chinese and Japanese as ours, so that it parts the names of scripts. */
function halfWidth(text: string): string {
  return text
    .replace(/[\uff01-\uff5e]/g, (wide) => String.fromCharCode(wide.charCodeAt(0) - 0xfee0))
    .replace(/[、﹐]/g, ',')
    .replace(/。/g, '.')
}
