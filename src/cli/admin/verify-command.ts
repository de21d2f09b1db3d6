/** `rushes admin verify`: checks the database file, and recomputes every balance from the ledger. */
import { RushesError } from '../../errors.js'
import { plural } from '../terminal/plural.js'
import type { AdminCommand, Work } from './admin-command.js'

export const verifyCommand: AdminCommand = {
  usage: 'verify',
  about: 'Check the database, recompute every balance and report differences',
  work: verify,
}

async function verify({ ctx: { out }, admin }: Work): Promise<void> {
  const { accounts, entries, runs, credits, problems, notRecorded } = await admin.verify()
  if (out.mode.json)
    out.json({
      ...{ ok: problems.length === 0, accounts, entries, runs, credits, problems },
      not_recorded: notRecorded.map(({ runId, ...run }) => ({ run_id: runId, ...run })),
    })
  else if (problems.length > 0) for (const problem of problems) out.line(problem)
  else out.line('ok')
  for (const { runId, account, credits: price } of notRecorded)
    out.warn(
      `${runId} (${account}): the service could not record how it ended, and refunded nothing. To give back its price: \`rushes admin credits add ${account} ${price}\`.`,
    )
  const what = [
    plural(accounts, 'account'),
    plural(entries, 'entry', 'entries'),
    plural(runs, 'run'),
    plural(credits, 'credit'),
  ].join(', ')
  if (problems.length === 0) return out.note(`All balances are correct: ${what}.`)
  throw new RushesError(
    'service_error',
    `${plural(problems.length, 'problem')} found in the database (${what}).`,
    {
      hint: 'Copy the data folder first: another program or a faulty disk may have changed it. Then compare it with a backup (docs/backup.md).',
    },
  )
}
