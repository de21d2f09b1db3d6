/** `create_image`, `create_video` and `create_model_run`. */
import { randomUUID } from 'node:crypto'
import { EXIT, RushesError, usageError } from '../../errors.js'
import { asRushesError, Interruption } from '../../host/interrupts.js'
import type { JournalRun } from '../../journal/index.js'
import { identityOf } from '../../protocol/identity.js'
import { writeJson } from '../../protocol/json.js'
import type { Kind } from '../../protocol/models.js'
import { amountOf, amountText } from '../../protocol/price.js'
import type { Context } from '../context/context.js'
import { deliveryOf } from '../flags/delivery.js'
import { labelsOf } from '../flags/labels.js'
import type { CostLimit } from '../models/cost-limit.js'
import { checkTarget } from '../runs/check-target.js'
import { createRuns } from '../runs/create-runs.js'
import { buildRequest, type RequestOptions, type RunRequest } from '../runs/request.js'
import { revisit } from '../runs/revisit.js'
import { modelFor } from '../settings/required-settings.js'
import { type Answer, errorAnswer, leftJson, leftText, runsAnswer } from './answers.js'
import { fileIn, outputIn } from './call-paths.js'
import type { Call, Delivery, Job, JobObserver, McpSession } from './session.js'

interface Create {
  readonly kind: Kind | undefined
  readonly model: string | undefined
  readonly input: Readonly<Record<string, unknown>>
  readonly requestId: string
  readonly delivery: Delivery
  readonly labels: readonly string[]
  /** Whether the call only asks for the estimate. */
  readonly isDryRun: boolean
}

/** Creates a run. `kind`: undefined for `create_model_run`, whose input is sent unchanged. */
export async function createRun(session: McpSession, kind: Kind | undefined, call: Call): Promise<Answer> {
  const create = await createOf(session, kind, call.args)
  const { requestId, model, input, delivery, isDryRun } = create
  const limit = await session.limit()
  const work = (ctx: Context, observer: JobObserver, job: Job) =>
    carryOut(ctx, create, { session, limit, observer, job })
  const key = `create ${requestId}`
  // As in the journal: the order of parameters, and whether the model is named, do not matter.
  const asked = `${kind} ${identityOf(model ?? '', input)}`
  const running = isDryRun ? undefined : [...session.jobs].find(({ options }) => options.key === key)
  if (running !== undefined && running.options.asked !== asked) throw otherRequest(requestId)
  const job = running ?? session.start(isDryRun ? {} : { key, asked, delivery, isCreate: true }, work)
  await session.wait(isDryRun || call.args.wait !== false ? job.done : job.known, call, [job])
  const answered = { requestId, creator: kind === undefined ? 'create_model_run' : `create_${kind}` }
  const { estimate } = job
  const amount = estimate && amountOf(estimate.millionths)
  const text = estimate
    ? `estimate: ${amountText(estimate.millionths, estimate.currency)}`
    : 'no estimate: the model is without a price'
  const isShown = isDryRun || estimate !== undefined || limit.maxCost !== undefined
  const lines = isShown ? [`${text}; ${isDryRun ? 'nothing was sent; ' : ''}${leftText(limit)}`] : []
  const further = { estimate: amount ?? null, currency: estimate?.currency ?? null, ...leftJson(limit) }
  if (!isDryRun && (job.id !== undefined || job.errors.length === 0))
    return runsAnswer([job], { ...answered, lines, further })
  const { errors, warnings } = job
  return errors.length > 0
    ? errorAnswer({ errors: errors.slice(0, 1), warnings })
    : { lines, structured: { runs: [], ...further }, warnings }
}

async function createOf(session: McpSession, kind: Kind | undefined, args: Call['args']): Promise<Create> {
  const { model: named, wait: _, output, overwrite, request_id, dry_run, labels, ...parameters } = args
  const input = kind === undefined ? (parameters.input as Create['input']) : parameters
  const typed = typeof named === 'string' ? named : undefined
  return {
    kind,
    model: typed ?? (kind && (await modelFor(session.ctx, kind))),
    input,
    requestId: typeof request_id === 'string' ? request_id : randomUUID(),
    delivery: { output: outputIn(session.options, output), overwrite: overwrite === true },
    labels: labelsOf(Array.isArray(labels) ? labels : [], 'labels'),
    isDryRun: dry_run === true,
  }
}

interface Parts {
  readonly session: McpSession
  readonly limit: CostLimit
  readonly observer: JobObserver
  readonly job: Job
}

async function carryOut(ctx: Context, create: Create, parts: Parts): Promise<void> {
  const { session, limit, job } = parts
  const { model, requestId, isDryRun } = create
  const earlier = model === undefined || isDryRun ? undefined : await earlierCreate(ctx, requestId)
  // Before images are read.
  if (model !== undefined && earlier === undefined && !isDryRun) limit.checkRuns(1)
  const request = await buildRequest(ctx, requestOf(session, create))
  const { body } = request
  if (request.model === undefined || body === undefined) throw await ctx.missingError(request.missing)
  const sent = { ...request, model: request.model, body }
  if (earlier !== undefined) return followEarlier(ctx, earlier, sent, create, parts)
  job.estimate = limit.prices.estimate(request)
  if (isDryRun) return
  await createNew(ctx, sent, create, parts).catch((thrown: unknown) =>
    job.errors.push(asRushesError(thrown)),
  )
  if (!job.errors.some(({ exitCode }) => exitCode === EXIT.usage)) return
  // Another server may have sent this very create meanwhile, and what it costs may have reached a limit.
  const other = await earlierCreate(ctx, requestId)
  if (other === undefined) return
  job.errors.length = 0
  await followEarlier(ctx, other, sent, create, parts)
}

type SentRequest = RunRequest & { readonly model: string; readonly body: Uint8Array }

async function followEarlier(
  ctx: Context,
  earlier: JournalRun,
  request: SentRequest,
  { requestId, delivery }: Create,
  { job, observer }: Parts,
): Promise<void> {
  if (earlier.identity !== identityOf(request.model, request.input, undefined, request.media))
    throw otherRequest(requestId)
  job.estimate = earlier.estimate
  job.id = idOf(earlier, requestId)
  await revisit(ctx, [job.id], { ...delivery, download: true }, { many: 'same command', observer })
}

async function createNew(
  ctx: Context,
  request: SentRequest,
  { delivery, labels, requestId }: Create,
  { limit, job, observer }: Parts,
): Promise<void> {
  await limit.check(() => limit.prices.sum([request]))
  const checked = await deliveryOf(ctx, { ...delivery, download: true }, { runs: 1 })
  checkTarget(ctx, checked, { runs: 1, kind: request.kind })
  await createRuns(ctx, {
    ...request,
    ...{ labels, requestId, observer, limit },
    connection: await ctx.connect(),
    delivery: checked,
    count: 1,
    wait: true,
  })
  // The call was cancelled before the create was sent.
  if (job.id === undefined && job.errors.length === 0) throw new Interruption('SIGTERM')
}

/** Finds an earlier create with this request id. Throws if the journal cannot be read: it could then be paid twice. */
async function earlierCreate(ctx: Context, requestId: string): Promise<JournalRun | undefined> {
  const address = await ctx.address()
  return (await ctx.journal()).findByRequest(address, requestId)
}

/** The prompt is passed in `--input`, where "-" is plain text and not standard input. */
const requestOf = ({ options }: McpSession, { kind, model, input }: Create): RequestOptions => ({
  ...{ kind, model, input: writeJson(input), prompt: { words: [] }, parameters: {}, isTool: true },
  fileOf: (path, parameter) => fileIn(options, path, parameter),
})

/** Returns the id of an earlier create's run. Throws if it has no id, or none yet. */
function idOf({ id, key = '', phase }: JournalRun, requestId: string): string {
  if (id !== undefined) return id
  const [message, hint] =
    phase === 'sending'
      ? [
          `was sent by another process and is not answered yet (${key}).`,
          'Call again in a few seconds, with the same request_id.',
        ]
      : [
          `has an unknown outcome (${key}): a run may exist and cost money.`,
          `Ask the user to check the runs of the account. See it with \`rushes show ${key}\`. If the run does not exist, ` +
            'create it with another request_id.',
        ]
  throw new RushesError(
    'submission_unknown',
    `The create with the request_id "${requestId}" ${message} Nothing was sent again.`,
    { exitCode: EXIT.outcomeUnknown, hint },
  )
}

const otherRequest = (requestId: string): RushesError =>
  usageError(
    `The request_id "${requestId}" was used for a create with another model or input. Nothing was sent.`,
    'Use a new request_id for another run, or repeat the call with the same arguments.',
  )
