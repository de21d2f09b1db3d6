/** `create_image`, `create_video` and `create_model_run`: the command `rushes run`, once for one `request_id`. */
import { randomUUID } from 'node:crypto'
import { EXIT, RushesError } from '../../errors.js'
import type { JournalRun } from '../../journal/index.js'
import { identityOf } from '../../protocol/identity.js'
import { writeJson } from '../../protocol/json.js'
import type { Kind, ModelInput } from '../../protocol/models.js'
import { amountOf } from '../../protocol/price.js'
import { runCommand } from '../commands/run.js'
import type { CreateFlags } from '../flags/model-flags.js'
import { revisit } from '../runs/carry-out.js'
import { buildRequest, type RequestOptions } from '../runs/request.js'
import { modelFor } from '../settings/settings.js'
import { type Answer, answerWith, runsAnswer } from './answers.js'
import { type Call, type Job, type McpSession, otherArguments } from './session.js'

/** A create with one `request_id`. */
interface Create {
  readonly request: RequestOptions
  readonly flags: CreateFlags
  readonly requestId: string
}

/** Creates a run. `kind`: undefined for `create_model_run`, whose input is sent unchanged. */
export async function createWithTool(
  session: McpSession,
  kind: Kind | undefined,
  call: Call,
): Promise<Answer> {
  const { model: named, wait, dry_run, output, overwrite, request_id, ...parameters } = call.args
  const model = typeof named === 'string' ? named : kind && (await modelFor(session.ctx, kind))
  const input = kind === undefined ? (parameters.input as ModelInput) : parameters
  const create: Create = {
    // The prompt is a part of the input, where "-" is plain text and not standard input.
    request: {
      kind,
      model,
      input: writeJson(input),
      prompt: { words: [] },
      parameters: {},
      isTool: true,
      fileOf: (path, parameter) => session.fileIn(path, parameter),
    },
    flags: {
      count: '1',
      wait: true,
      download: true,
      dryRun: dry_run === true,
      output: session.outputIn(output),
      overwrite: overwrite === true,
    },
    requestId: typeof request_id === 'string' ? request_id : randomUUID(),
  }
  const { request, flags, requestId } = create
  const limit = await session.limit()
  if (dry_run === true) {
    const job = await session.finish(call, ({ ctx }) => runCommand(ctx, request, flags, { limit }))
    // Without the input, which may have whole files.
    return answerWith(job, ([{ estimate, currency } = {}]) => ({ runs: [], estimate, currency }))
  }
  // As in the journal: the order of parameters, and whether the model is named, do not matter.
  const job = session.join(keyOf(requestId), identityOf(model ?? '', input), (own) =>
    payOnce(session, create, own),
  )
  await session.wait([job], call, wait === false ? 'known' : 'done')
  const { run, errors, warnings } = job
  if (run === undefined && errors.length > 0) return { errors, warnings }
  const estimate = limit.prices.estimate({ model, kind, input })
  return runsAnswer([job], {
    request_id: requestId,
    estimate: estimate === undefined ? null : amountOf(estimate.millionths),
    currency: estimate?.currency ?? null,
  })
}

const keyOf = (requestId: string): string => `request_id ${JSON.stringify(requestId)}`

/** Creates the run, or follows the one that the journal has for this request_id. */
async function payOnce(session: McpSession, { request, flags, requestId }: Create, job: Job): Promise<void> {
  const earlier = await earlierCreate(session, requestId)
  if (earlier === undefined) {
    // If another server sends this very create meanwhile, the journal refuses this one, and the next call gets the run.
    await runCommand(job.ctx, request, flags, { requestId, limit: await session.limit(), observer: job })
    return
  }
  const { model = '', input, media } = await buildRequest(job.ctx, request)
  if (earlier.identity !== identityOf(model, input, media)) throw otherArguments(keyOf(requestId))
  const id = idOf(earlier, requestId)
  job.follows = id
  await revisit(job.ctx, [id], flags, { observer: job })
}

/** Throws if the journal cannot be read: the run could then be paid twice. */
async function earlierCreate({ ctx }: McpSession, requestId: string): Promise<JournalRun | undefined> {
  const journal = await ctx.journal()
  // The command reports an address that is not set, with all else that is missing.
  const address = await ctx.findAddress()
  return address === undefined ? undefined : journal.findByRequest(address, requestId)
}

/** Returns the id of an earlier create's run. Throws if it has no id, or none yet. */
function idOf({ id, key, phase }: JournalRun, requestId: string): string {
  if (id !== undefined) return id
  const outcome =
    phase === 'sending' ? 'was sent by another process and is not answered yet' : 'has an unknown outcome'
  throw new RushesError(
    'submission_unknown',
    `The create with the ${keyOf(requestId)} ${outcome} (${key}): a run may exist and cost money. Nothing was sent again.`,
    {
      exitCode: EXIT.outcomeUnknown,
      hint:
        'Call again in a few seconds. If that changes nothing, ask the user to check the runs of the account: see ' +
        `\`rushes show ${key}\`. Only if the run does not exist, create it with another request_id.`,
    },
  )
}
