/** Combinations of one matrix with the same name or output: one problem for the row, with the placeholders to add. */
import type { Origin, RowTemplate } from './matrix.js'
import type { Combination } from './matrix-combinations.js'
import { namedBy } from './matrix-values.js'
import type { Node } from './nodes.js'
import type { Position, ReportProblem } from './position.js'
import { describe } from './row-problems.js'

type What = 'name' | 'output'

interface Claim {
  readonly name: string
  readonly output: string
  readonly origin: Origin | undefined
  readonly nameAt: Position
  readonly outputAt: Position
}

export interface MatrixCollisions {
  /** False when the two are not from the same matrix. */
  add(what: What, first: Claim, second: Claim): boolean
  /** Reports one problem for each row. */
  flush(): void
}

interface Collision {
  readonly what: What
  readonly first: Claim
  readonly second: Claim
  /** Keys whose values differ between any two that collide. */
  readonly keys: Set<string>
}

export function createMatrixCollisions(report: ReportProblem): MatrixCollisions {
  const found = new Map<RowTemplate, Map<What, Collision>>()
  return {
    add(what, first, second) {
      const [one, other] = [first.origin, second.origin]
      if (one === undefined || other === undefined || one.template !== other.template) return false
      const byWhat = found.get(one.template) ?? new Map<What, Collision>()
      const collision = byWhat.get(what) ?? { what, first, second, keys: new Set<string>() }
      found.set(one.template, byWhat.set(what, collision))
      for (const key of differing(one.combination, other.combination)) collision.keys.add(key)
      return true
    },
    flush() {
      for (const [template, byWhat] of found)
        for (const collision of byWhat.values())
          report(
            collision.what === 'name' ? collision.second.nameAt : collision.second.outputAt,
            messageOf(template, collision),
          )
    },
  }
}

const differing = (one: Combination, other: Combination): readonly string[] =>
  [...one.keys()].filter((key) => one.get(key) !== other.get(key))

function messageOf(template: RowTemplate, { what, first, second, keys }: Collision): string {
  // An output that is not given comes from the name.
  const field = what === 'output' && template.output !== undefined ? 'output' : 'name'
  const written = template[field] ?? ''
  const inOrder = [...(second.origin?.combination.keys() ?? [])].filter((key) => keys.has(key))
  const lacking = inOrder.filter((key) => !written.includes(`{${key}}`) && !written.includes(`{${key}.`))
  const text = second[what]
  if (lacking.length === 0)
    return `the ${what} "${text}" is the same for ${combinationOf(first)} and ${combinationOf(second)}`
  const same = `the ${what} "${text}" is the same for several combinations`
  const listed = lacking.find((key) => second.origin?.combination.get(key)?.type === 'list')
  if (listed !== undefined)
    return `${same}, since ${listed} cannot be part of it: use a key with maps instead, such as look: [{name: red, image: red.png}], with {look} in ${field} and "{look.image}" in ${listed}`
  const placeholders = lacking.map((key) => placeholderOf(key, second.origin?.combination.get(key)))
  return `${same}: add ${placeholders.join(' and ')} to ${field}`
}

function placeholderOf(key: string, value: Node | undefined): string {
  const [part] = value?.type === 'fields' && namedBy(value) === undefined ? value.fields.keys() : []
  return part === undefined ? `{${key}}` : `{${key}.${part}}`
}

const combinationOf = ({ origin }: Claim): string =>
  origin === undefined ? '' : `(${describe(origin.combination)})`
