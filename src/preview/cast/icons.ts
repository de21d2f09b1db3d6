// The pictures themselves: Fluent Emoji by Microsoft (MIT), flat, cut by figures.mjs. It has animals, people, vehicles,
// buildings and food in colour and in one hand, and a licence that asks for its notice alone. Laid beside it: Game Icons
// (CC BY 3.0) has a standing fox, but one colour and many hands; Noto (25 MB) is shaded and small in detail; OpenMoji and
// Twemoji have licences (CC BY-SA, CC BY) that would reach into every picture drawn.
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

/** The name of an emoji's picture; whatever its skin, and mostly whatever its sex, since the set was cut to one each. */
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
