// Which figure a word calls, and how it is placed in a scene.
import { CAST, type Stance } from './cast-list.js'

export interface Role {
  /** The picture's name in the set. */
  readonly icon: string
  readonly stance: Stance
}

/** Every role with its words, in the order of the list. */
export const ROLES: readonly (Role & { readonly words: readonly string[] })[] = Object.entries(CAST).flatMap(
  ([stance, list]) =>
    list
      .trim()
      .split(/\s+/)
      .map((entry) => {
        const [icon = '', words] = entry.split(':')
        return { icon, stance: stance as Stance, words: words?.split(',') ?? [] }
      }),
)

const byWord = new Map<string, Role>()
for (const { icon, stance, words } of ROLES)
  for (const word of [icon, ...words]) if (!byWord.has(word)) byWord.set(word, { icon, stance })

const byIcon = new Map<string, Role>(ROLES.map(({ icon, stance }) => [icon, { icon, stance }]))

/** By a word or by several joined with a hyphen, in the singular or the plural. */
export function roleCalled(word: string): { readonly role: Role; readonly plural: boolean } | undefined {
  const exact = byWord.get(word)
  if (exact !== undefined) return { role: exact, plural: PLURALS.has(word) }
  for (const singular of singulars(word)) {
    const role = byWord.get(singular)
    if (role !== undefined) return { role, plural: true }
  }
  return undefined
}

/** By the picture's name; one that is in no table is a thing. */
export function roleOf(icon: string): Role {
  return byIcon.get(icon) ?? { icon, stance: 'thing' }
}

/** Plurals that have an entry of their own in the list. */
const PLURALS: ReadonlySet<string> = new Set(
  'birds balloons hot-air-balloons lanterns wolves mice geese ships people couple friends crowd family flock cattle houses village bikes children pups'.split(
    ' ',
  ),
)

function singulars(word: string): readonly string[] {
  if (word.length < 4 || !word.endsWith('s')) return []
  const cut = [word.slice(0, -1)]
  if (word.endsWith('es')) cut.push(word.slice(0, -2))
  if (word.endsWith('ies')) cut.push(`${word.slice(0, -3)}y`)
  return cut
}
