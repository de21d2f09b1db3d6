// The prompt as it can be lettered. Inter, the font that comes with us, has Latin (with Vietnamese), Greek and Cyrillic.
// For other scripts a row of empty boxes would say nothing and CJK fonts weigh 5 MB a weight, so each run of them
// becomes its name in brackets, `[Han]`, and emoji are left out. Right-to-left and Indic scripts would besides need
// shaping, which the font reader does not do.

const CONTROLS = /[\p{Cc}\p{Cf}\p{Cs}\p{Cn}\u2028\u2029]+/gu
const EMOJI = /\p{Extended_Pictographic}|\p{Emoji_Modifier}|\p{Regional_Indicator}|\u20e3|\ufe0f/u
const NAMED_SCRIPTS = [
  'Han',
  'Hiragana',
  'Katakana',
  'Hangul',
  'Arabic',
  'Hebrew',
  'Devanagari',
  'Bengali',
  'Tamil',
  'Telugu',
  'Thai',
  'Lao',
  'Khmer',
  'Myanmar',
  'Georgian',
  'Armenian',
  'Ethiopic',
  'Sinhala',
  'Tibetan',
  'Mongolian',
  'Cherokee',
] as const
const SCRIPTS = NAMED_SCRIPTS.map((name) => ({ name, test: new RegExp(`\\p{Script=${name}}`, 'u') }))

/**
 * One line of text of which every character is in the font or is a space.
 * `has` tells whether the font can draw a character (given as a string of one code point).
 */
export function drawableText(prompt: string, has: (character: string) => boolean): string {
  let text = ''
  let unnamed = ''
  for (const character of halfWidth(prompt.normalize('NFC')).replace(/\s+/gu, ' ').replace(CONTROLS, '')) {
    if (character === ' ' || has(character)) {
      text += character
      if (character !== ' ') unnamed = ''
      continue
    }
    // A mark belongs to the letter before it and is lost with it, or lost alone.
    if (EMOJI.test(character) || /\p{Mark}|\p{Co}/u.test(character)) continue
    const name = SCRIPTS.find(({ test }) => test.test(character))?.name ?? '…'
    if (name === unnamed) continue
    text += ` [${name}] `
    unnamed = name
  }
  return text
    .replace(/ +/g, ' ')
    .replace(/ ([,.;:!?])/g, '$1')
    .trim()
}

/** The punctuation of Chinese and Japanese as ours, so that it parts the names of scripts. */
function halfWidth(text: string): string {
  return text
    .replace(/[\uff01-\uff5e]/g, (wide) => String.fromCharCode(wide.charCodeAt(0) - 0xfee0))
    .replace(/[、﹐]/g, ',')
    .replace(/。/g, '.')
}
