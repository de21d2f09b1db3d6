/** The flags of `run` for the create. The rare ones are last. */
import { Option } from 'commander'
import { DEFAULTS } from '../../protocol/defaults.js'
import type { DeliveryOptions } from './delivery.js'
import { labelOption } from './labels.js'

/** Values of the flags, not checked yet. */
export interface CreateFlags extends DeliveryOptions {
  readonly count: string
  readonly wait: boolean
  readonly dryRun?: boolean
  readonly maxCost?: string
  readonly label?: readonly string[]
  /** Whether many runs are created without a confirmation. */
  readonly yes?: boolean
}

/** On a terminal, more runs than this need a confirmation. */
export const MAX_UNASKED_RUNS = Number(DEFAULTS.unaskedRuns)

export const runOptions = (): readonly Option[] =>
  [
    new Option('-n, --count <n>', 'Number of runs of the same input').default(DEFAULTS.count),
    new Option('--dry-run', 'Print the request body that would be sent'),
    new Option('--max-cost <amount>', 'Exit with 2 if the estimate is higher, or unknown'),
    new Option('--no-wait', 'Print the run id and exit as soon as it is created'),
    labelOption('Label in the journal (repeatable); never sent'),
    new Option('--yes', `Do not ask before creating more than ${MAX_UNASKED_RUNS} runs`),
  ].map((option) => option.helpGroup('Run options:'))
