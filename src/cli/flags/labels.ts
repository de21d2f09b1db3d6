/** The flag `--label`: it labels the runs that a command creates, or selects the runs with all of the labels. */
import { Option } from 'commander'
import { usageError } from '../../errors.js'
import { asLabel, labelProblem, MAX_LABELS } from '../../protocol/labels.js'
import { repeated } from './values.js'

export const labelOption = (about: string): Option => new Option('--label <text>', about).argParser(repeated)

/** `--label` of a command that selects runs. */
export const labelFilter = (): Option =>
  labelOption('Only runs with this label (repeatable: runs with all of them)')

/** Returns the labels without duplicates. Throws `usage`. */
export function labelsOf(texts: readonly string[] = [], what = '--label'): readonly string[] {
  const labels = [...new Set(texts.map(asLabel))]
  for (const label of labels) {
    const problem = labelProblem(label)
    if (problem !== undefined) throw usageError(`${what}: ${problem}.`, 'Example: --label "spring campaign".')
  }
  if (labels.length > MAX_LABELS) throw usageError(`${what}: at most ${MAX_LABELS} labels are allowed.`)
  return labels
}
