/** `rushes admin run`: decisions on runs whose outcome at a provider is unknown. */
import { printable } from '../../protocol/text.js'
import type { AdminCommand } from './admin-command.js'

export const runCommands: readonly AdminCommand[] = [
  {
    usage: 'refund <id>',
    about: 'Refund a failed run whose outcome is unknown',
    async work({ ctx: { out }, admin }, id = '') {
      await admin.refundRun(id)
      if (out.mode.json) out.json({ id, decision: 'refunded' })
      else out.line(printable(id))
      out.note(`${printable(id)}: refunded.`)
    },
  },
  {
    usage: 'adopt <id> <upstream-id>',
    about: "Fetch the result of a run whose outcome is unknown, by the provider's id of its job",
    async work({ ctx: { out }, admin }, id = '', upstreamId = '') {
      await admin.adoptRun(id, upstreamId)
      if (out.mode.json) out.json({ id, decision: 'adopted', upstream_id: upstreamId })
      else out.line(printable(id))
      out.note(`${printable(id)}: queued again. A worker fetches the result of ${printable(upstreamId)}.`)
    },
  },
]
