/** `rushes admin run`: the runs of all accounts of a service, and decisions on runs whose outcome is unknown. */
import { LOCAL_STATUSES } from '../../protocol/run-state.js'
import { isoOrNull, isoTime } from '../../protocol/units.js'
import type { StoredRun } from '../../service/store/run.js'
import { choiceOption } from '../flags/values.js'
import { printList } from '../terminal/table.js'
import type { AdminCommand } from './admin-command.js'

export const runCommands: readonly AdminCommand[] = [
  {
    usage: 'list',
    about: 'List the newest 100 runs of all accounts',
    options: (command) =>
      command
        .option('--account <account>', 'Only runs of this account')
        .addOption(choiceOption('--status <status>', 'Only runs with this status', LOCAL_STATUSES)),
    async work({ ctx: { out }, admin, flags: { account, status } }) {
      const runs = await admin.runs(account, status)
      await printList(out, runs, {
        isCut: true,
        optional: ['STATUS', 'PRICE', 'CREATED', 'ACCOUNT', 'MODEL', 'KIND'],
        header: ['ID', 'ACCOUNT', 'STATUS', 'KIND', 'MODEL', 'PRICE', 'CREATED', 'PROMPT'],
        cells: (run) => [
          run.id,
          run.account,
          run.status,
          run.kind,
          run.model,
          run.isRefunded ? `${run.price} refunded` : run.price,
          isoTime(run.createdAtMs),
          run.prompt ?? '',
        ],
        json: (run) => ({
          ...runJson(run),
          account: run.account,
          prompt: run.prompt ?? null,
          price: run.price,
          refunded: run.isRefunded,
        }),
      })
    },
  },
  {
    usage: 'cancel <id>',
    about: 'Cancel a run, also one whose model is gone',
    async work({ ctx: { out }, admin }, id = '') {
      const run = await admin.cancelRun(id)
      out.answer(runJson(run), run.status)
      if (run.failure !== undefined) out.note(run.failure.message)
    },
  },
  {
    usage: 'refund <id>',
    about: 'Refund a failed run whose outcome is unknown',
    async work({ ctx: { out }, admin }, id = '') {
      await admin.refundRun(id)
      out.answer({ id, decision: 'refunded' }, id)
      out.note(`${id}: refunded.`)
    },
  },
  {
    usage: 'adopt <id> <upstream-id>',
    about: "Fetch the result of a run whose outcome is unknown, by the provider's id of its job",
    async work({ ctx: { out }, admin }, id = '', upstreamId = '') {
      await admin.adoptRun(id, upstreamId)
      out.answer({ id, decision: 'adopted', upstream_id: upstreamId }, id)
      out.note(`${id}: queued again. A worker fetches the result of ${upstreamId}.`)
      out.note('If the provider does not know this job, the run stays charged, and its error names the job.')
    },
  },
]

const runJson = ({ id, model, kind, status, failure, ...times }: Omit<StoredRun, 'input'>) => ({
  ...{ id, model, kind, status, error: failure ?? null },
  created_at: isoTime(times.createdAtMs),
  started_at: isoOrNull(times.startedAtMs),
  finished_at: isoOrNull(times.finishedAtMs),
})
