/** `rushes admin run`: the runs of all accounts of a service. */
import type { StoredRun } from '../../service/stored-run.js'
import { type AdminCommand, isoOrNull, isoTime } from './admin-command.js'

export const runCommands: readonly AdminCommand[] = [
  {
    usage: 'cancel <id>',
    about: 'Cancel a run, also one whose model is gone',
    async work({ ctx: { out }, admin }, id = '') {
      const run = await admin.cancelRun(id)
      if (out.mode.json) out.json(runJson(run))
      else out.line(run.status)
      if (run.failure !== undefined) out.note(run.failure.message)
    },
  },
]

const runJson = ({ id, model, kind, status, failure, ...times }: StoredRun) => ({
  ...{ id, model, kind, status, error: failure ?? null },
  created_at: isoTime(times.createdAtMs),
  started_at: isoOrNull(times.startedAtMs),
  finished_at: isoOrNull(times.finishedAtMs),
})
