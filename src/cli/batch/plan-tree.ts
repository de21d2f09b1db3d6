/** A plan for people: a row that uses others is below the first of them. Pure. */
import type { Step } from '../../batch/plan/index.js'
import { dependentsOf } from '../../batch/plan/row-order.js'
import { printable } from '../../protocol/text.js'
import { stepWords } from './show.js'

interface Branch {
  readonly step: Step
  /** Lines to the left of its children. */
  readonly indent: string
  /** Lines to the left of its own name. */
  readonly prefix: string
}

/** A chain may have thousands of rows: deeper ones are not indented further. */
const MAX_INDENT = 24

/** Action, name, file, reason; without rows that use others, in the order of the manifest. */
export function treeRows(steps: readonly Step[]): readonly (readonly string[])[] {
  const children = dependentsOf(
    steps.map((step) => ({ name: step.entry.name, sources: step.sources.slice(0, 1), step })),
  )
  const rows: (readonly string[])[] = []
  const open: Branch[] = steps
    .filter(({ sources }) => sources.length === 0)
    .map((step) => ({ step, indent: '', prefix: '' }))
    .reverse()
  for (let branch = open.pop(); branch !== undefined; branch = open.pop()) {
    const { step, indent, prefix } = branch
    rows.push(rowOf(step, prefix))
    const below = children.get(step.entry.name) ?? []
    const isFull = indent.length >= MAX_INDENT
    const branches = below.map((child, at): Branch => {
      const isLast = at === below.length - 1
      return {
        step: child.step,
        indent: isFull ? indent : `${indent}${isLast ? '   ' : '│  '}`,
        prefix: `${indent}${isLast ? '└─ ' : '├─ '}`,
      }
    })
    open.push(...branches.reverse())
  }
  return rows
}

function rowOf(step: Step, prefix: string): readonly string[] {
  const [action = '', name = '', file = '', reason = ''] = stepWords(step)
  const others = step.sources.slice(1).map((source) => `row:${printable(source)}`)
  const uses = others.length === 0 ? [] : [`also uses ${others.join(', ')}`]
  return [action, `${prefix}${name}`, file, [...(reason === '' ? [] : [reason]), ...uses].join('; ')]
}
