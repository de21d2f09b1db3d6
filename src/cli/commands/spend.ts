/** `rushes spend`: sums what the runs created on this machine cost. It sends no requests. */
import type { Command } from 'commander'
import { EXIT } from '../../errors.js'
import { SPEND_GROUPINGS, SPEND_OUTCOMES, type SpendGrouping, type SpendSum } from '../../journal/index.js'
import { DEFAULTS } from '../../protocol/defaults.js'
import { amountOf, decimalText } from '../../protocol/price.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { choiceOption, labelFilter } from '../flags/values.js'
import { type FilterOptions, filterOf, sinceOption } from '../runs/run-selection.js'
import { printList } from '../terminal/table.js'

interface SpendFlags extends Pick<FilterOptions, 'since' | 'label'> {
  readonly by: SpendGrouping
}

export function register(command: Command, { act }: CommandEnvironment): void {
  const by = choiceOption('--by <group>', 'Group by model, day or label', SPEND_GROUPINGS)
  for (const option of [sinceOption(), by.default(DEFAULTS.spendGrouping), labelFilter()])
    command.addOption(option)
  act(command, spendCommand)
}

interface SpendRow extends SpendSum {
  readonly group: SpendGrouping | 'total'
}

async function spendCommand(ctx: Context, { by, ...filter }: SpendFlags): Promise<number> {
  const { out } = ctx
  const journal = await ctx.journal()
  const { groups, total } = journal.spend(await filterOf(ctx, { ...filter, limit: '0' }), by)
  const rows: readonly SpendRow[] = [
    ...groups.map((sum) => ({ group: by, ...sum })),
    ...total.map((sum) => ({ group: 'total' as const, ...sum })),
  ]
  const isTable = out.stdoutIsTerminal && !out.mode.json
  if (isTable && groups.length === 0) {
    out.note('No runs found.')
    return EXIT.ok
  }
  await printList(out, rows, {
    header: ['by', 'name', 'runs', 'no price', 'currency', ...SPEND_OUTCOMES].map((each) =>
      each.toUpperCase(),
    ),
    cells: cellsOf,
    json: jsonOf,
  })
  if (isTable) out.note('These are estimates. Runs that failed or were canceled may have been refunded.')
  return EXIT.ok
}

/** Cells: model, day, label or total; its name; runs, runs without a price, currency, and the amounts by outcome. */
const cellsOf = ({ group, name = '', runs, withoutPrice, currency, amounts }: SpendRow) => [
  group,
  name,
  runs,
  withoutPrice,
  currency ?? '',
  ...SPEND_OUTCOMES.map((each) => (currency === undefined ? '' : decimalText(amounts[each]))),
]

function jsonOf({ group, name, runs, withoutPrice, currency, amounts }: SpendRow) {
  const inJson = (amount: bigint) => (currency === undefined ? null : amountOf(Number(amount)))
  return {
    ...{ group, name: name ?? null, runs, without_price: withoutPrice, currency: currency ?? null },
    estimate: inJson(SPEND_OUTCOMES.reduce((sum, each) => sum + amounts[each], 0n)),
    ...Object.fromEntries(SPEND_OUTCOMES.map((each) => [each, inJson(amounts[each])])),
  }
}
