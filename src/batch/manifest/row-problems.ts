/**
 * The problems of the rows that a matrix makes: each place is reported once, not once for each combination. The message
 * names a combination when not all of them have the problem.
 */
import { shortened } from '../../protocol/text.js'
import type { Combination } from './matrix-combinations.js'
import { namedBy } from './matrix-values.js'
import type { Node } from './nodes.js'
import type { Position, ReportProblem } from './position.js'

export interface RowProblems {
  reportFor(combination: Combination): ReportProblem
  /** Reports what was collected. */
  flush(): void
}

interface Found {
  readonly message: string
  /** The combinations that have it. */
  readonly in: Set<Combination>
}

interface Place {
  readonly at: Position
  readonly byMessage: Map<string, Found>
}

export function createRowProblems(combinations: readonly Combination[], report: ReportProblem): RowProblems {
  const places = new Map<string, Place>()
  /** Different values of each key. */
  const counts = new Map<string, number>()
  const countOf = (key: string): number => {
    const count = counts.get(key) ?? valuesOf(key, combinations)
    counts.set(key, count)
    return count
  }

  function messagesAt({ at, byMessage }: Place): readonly string[] {
    const all = [...byMessage.values()]
    const common = all.filter((each) => each.in.size === combinations.length)
    const [first] = all.filter((each) => each.in.size < combinations.length)
    const messages = common.map(({ message }) => message)
    if (first === undefined) return messages
    const having = new Set(all.flatMap((each) => (common.includes(each) ? [] : [...each.in])))
    return [...messages, `${first.message}${suffixOf(first, having, at)}`]
  }

  /** `having`: the combinations with any problem at this place. */
  function suffixOf({ in: own }: Found, having: ReadonlySet<Combination>, at: Position): string {
    const [shown = new Map<string, Node>()] = own
    const keys = [...shown.keys()].filter((key) => {
      const value = shown.get(key)
      return value !== undefined && !contains(value, at) && valuesOf(key, own) < countOf(key)
    })
    const others = [...having].filter((each) => keys.some((key) => each.get(key) !== shown.get(key))).length
    if (keys.length === 0) return ''
    const more = others === 0 ? '' : `, and ${others} more`
    return ` (${describe(shown, keys)}${more})`
  }

  return {
    reportFor: (combination) => (at, message) => {
      const id = `${at.line}:${at.column}`
      const place = places.get(id) ?? { at, byMessage: new Map() }
      places.set(id, place)
      const found = place.byMessage.get(message) ?? { message, in: new Set() }
      place.byMessage.set(message, found)
      found.in.add(combination)
    },
    flush() {
      for (const place of places.values()) for (const message of messagesAt(place)) report(place.at, message)
    },
  }
}

const valuesOf = (key: string, combinations: Iterable<Combination>): number =>
  new Set([...combinations].map((each) => each.get(key))).size

/** Then the position says which value is meant. */
function contains(node: Node, at: Position): boolean {
  if (node.at.line === at.line && node.at.column === at.column) return true
  if (node.type === 'scalar') return false
  const children = node.type === 'list' ? node.items : [...node.fields.values()].map(({ value }) => value)
  return children.some((child) => contains(child, at))
}

/** `animal: fox, aspect_ratio: 1:1` */
export const describe = (combination: Combination, keys: Iterable<string> = combination.keys()): string =>
  [...keys].map((key) => `${key}: ${valueText(combination.get(key))}`).join(', ')

function valueText(value: Node | undefined): string {
  const name = namedBy(value)
  if (name !== undefined) return shortened(name.text, 60)
  return value?.type === 'list' ? shortened(`[${value.items.map(valueText).join(', ')}]`, 60) : '{…}'
}
