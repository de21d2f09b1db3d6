// The figures: Fluent Emoji by Microsoft (MIT), flat, cut by figures.mjs. Compared: Game Icons (CC BY 3.0) have one colour
// and many styles, Noto (25 MB) is shaded and small in detail, and the licences of OpenMoji and Twemoji (CC BY-SA, CC BY)
// would apply to every picture drawn.
import { EXTRAS } from './extras.js'
import { FIGURES } from './figures.mjs'

/** Every picture is drawn in a box of 32 x 32. */
export const ICON_BOX = 32

const { icons } = FIGURES

/** SVG elements in a box of 32 x 32; undefined for a name that is not in the set. */
export function iconBody(name: string): string | undefined {
  if (Object.hasOwn(EXTRAS, name)) return EXTRAS[name]
  return Object.hasOwn(icons, name) ? icons[name]?.[1] : undefined
}

const byCharacters = new Map<string, string>()
for (const [name, [codes] = ['']] of Object.entries(icons)) {
  const plain = plainEmoji(
    String.fromCodePoint(...codes.split('-').map((code) => Number.parseInt(code, 16) || 0)),
  )
  if (!byCharacters.has(plain)) byCharacters.set(plain, name)
}

/** The figure of an emoji, regardless of its skin tone, and mostly of its gender. */
export function iconOfEmoji(emoji: string): string | undefined {
  const plain = plainEmoji(emoji)
  const [first = ''] = plain.split('\u200d')
  return (
    byCharacters.get(plain) ?? byCharacters.get(plain.replace(/^[👩👨]/u, '🧑')) ?? byCharacters.get(first)
  )
}

function plainEmoji(emoji: string): string {
  return emoji.replace(/[\ufe0e\ufe0f]|[\u{1f3fb}-\u{1f3ff}]|\u200d[\u2640\u2642]/gu, '')
}
