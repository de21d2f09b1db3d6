/** The creates of one `run`, and what becomes of them: reused, followed to their end, or printed and left. */

import { EXIT } from '../../errors.js'
import { withoutData } from '../../journal/identity.js'
import type { ModelInput } from '../../protocol/models.js'
import type { Connection, Context } from '../context/context.js'
import type { Delivery } from '../flags/delivery.js'
import { encodeRequest } from './request.js'
import { resumeCommand } from './resume.js'
import { findReusable } from './reuse.js'
import { withRunOutputs } from './run-outputs.js'
import { openSession } from './session.js'
import { submit } from './submit.js'

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
  const body = encodeRequest(model, input)
  const session = await openSession({
    ctx,
    connection,
    delivery,
    runs: count,
    isFollowed: wait,
    many: 'wait --all',
  })

  let hasSaidGrace = false
  const onGrace = () => {
    if (!hasSaidGrace)
      out.note(
        'Waiting up to 10 s for the response to the create, so that the run id is not lost. Press Ctrl-C again to stop now.',
      )
    hasSaidGrace = true
  }
  const asked = { kind, model, input: withoutData(input) }
  const ids: string[] = []
  const create = async () => {
    const note = recorder.note({ kind, model, input, meaning: options.input })
    const { id, body: service, ...times } = await submit({ client, body, clock, interrupts, note, onGrace })
    ids.push(id)
    return { ...asked, id, service, ...times, createdAt: new Date(clock.now()).toISOString() }
  }

  for (const [index, known] of reused.entries()) {
    out.note(`Reusing ${known.id}: same model and input, no charge.`)
    session.follow(index, known)
  }
  const missing = count - reused.length
  for (let index = reused.length; index < count; index++) session.create(index, model, create)
  if (missing > 0) session.progress.activity('creating the run')
  const { begun, exitCode } = await session.carryOut()
  if (begun < missing && !interrupts.second.aborted && exitCode !== EXIT.stdoutClosed)
    out.note(`${missing - begun} of ${count} runs were not created.`)
  if (!wait && ctx.globals.local) sayQueued(ctx, ids)
  return exitCode
}

/** Nothing renders a local run that nobody waits for. */
function sayQueued({ out, globals }: Context, ids: readonly string[]): void {
  const [only] = ids
  if (only === undefined) return
  const way = (runs: readonly string[] | 'all') => resumeCommand({ globals, delivery: [] }, 'wait', runs)
  out.note(
    ids.length === 1
      ? `${only} is queued. Render it with \`${way([only])}\`.`
      : `${ids.length} runs are queued. Render them with \`${way('all')}\`.`,
  )
}
