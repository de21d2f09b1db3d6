/** The creates of one `run`, and what becomes of them: reused, followed to their end, or named and left. */
import { withoutData } from '../../journal/identity.js'
import type { ModelInput } from '../../protocol/models.js'
import { printable } from '../../protocol/text.js'
import type { Connection, Context } from '../context/context.js'
import type { Delivery } from '../flags/delivery.js'
import type { RunRecord } from '../terminal/run-json.js'
import type { Known } from './follow.js'
import { encodeRequest } from './request.js'
import { findReusable } from './reuse.js'
import { withRunOutputs } from './run-outputs.js'
import { openSession } from './session.js'
import { submitAll } from './submit.js'

export interface CreateAll {
  readonly connection: Connection
  readonly delivery: Delivery
  readonly count: number
  readonly kind: string | undefined
  readonly model: string
  readonly input: ModelInput
  readonly wait: boolean
  readonly reuse: boolean
}

/** The exit code of the command. Throws what comes before the first create. */
export async function createAll(ctx: Context, options: CreateAll): Promise<number> {
  const { out, clock, interrupts } = ctx
  const { connection, delivery, count, kind, model, wait } = options
  const { client } = connection
  const recorder = await ctx.recorder()
  const reused = options.reuse
    ? await findReusable(ctx, client, { model, meaning: options.input, count })
    : []
  const input = await withRunOutputs(ctx, client, options.input)
  const session = await openSession({ ctx, connection, delivery, runs: count })
  const following: Promise<void>[] = []

  const proceed = (index: number, known: Known): void => {
    if (wait) {
      following.push(session.follow(index, known))
      return
    }
    if (!out.mode.json) out.line(printable(known.id))
    session.settle(index, out.mode.json ? recordOf(known) : undefined)
  }

  for (const [index, known] of reused.entries()) {
    out.note(`run ${known.id} made the same before: it is used again, and nothing is paid.`)
    proceed(index, known)
  }
  const missing = count - reused.length
  const asked = { kind, model, input: withoutData(input) }
  if (missing > 0) session.progress.activity('creating the run')
  const begun = await submitAll({
    client,
    body: encodeRequest(model, input),
    clock,
    interrupts,
    count: missing,
    note: () => recorder.note({ kind, model, input, meaning: options.input }),
    onGrace: () =>
      out.note(
        'Waiting up to 10 s for the answer to the create, so that the run is not lost; once more ends at once.',
      ),
    onRefused: (index, error) => session.settle(reused.length + index, undefined, error),
    onCreated(index, { id, body, sentAtMs, answeredAtMs }) {
      session.progress.activity(undefined)
      const createdAt = new Date(clock.now()).toISOString()
      proceed(reused.length + index, { ...asked, id, service: body, sentAtMs, answeredAtMs, createdAt })
    },
  })
  await Promise.all(following)
  if (begun < missing && !interrupts.second.aborted)
    out.note(`${missing - begun} of ${count} runs were not created.`)
  return session.end()
}

/** What is known of a run that is not waited for. */
const recordOf = ({ id, kind, model, state, service, createdAt, elapsedMs }: Known): RunRecord => ({
  id,
  kind,
  model,
  state,
  service: state?.service ?? service,
  files: [],
  error: undefined,
  createdAt,
  finishedAt: undefined,
  elapsedMs,
})
