/** `create_image`, `create_video` and `create_model_run`: one run for one `request_id`. */
import { randomUUID } from 'node:crypto'
import { EXIT, RushesError, usageError } from '../../errors.js'
import { asRushesError, Interruption } from '../../host/interrupts.js'
import type { JournalRun } from '../../journal/index.js'
import { identityOf } from '../../protocol/identity.js'
import { writeJson } from '../../protocol/json.js'
import type { Kind, ModelInput } from '../../protocol/models.js'
import { amountOf } from '../../protocol/price.js'
import type { Context } from '../context/context.js'
import { deliveryOf } from '../flags/delivery.js'
import { labelsOf } from '../flags/labels.js'
import type { CostLimit } from '../models/cost-limit.js'
import { checkTarget } from '../runs/check-target.js'
import { createRuns } from '../runs/create-runs.js'
import { buildRequest } from '../runs/request.js'
import { revisit } from '../runs/revisit.js'
import { modelFor } from '../settings/required-settings.js'
import { type Answer, leftJson, runsAnswer } from './answers.js'
import { fileIn, outputIn } from './call-paths.js'
import type { Call, Delivery, Job, McpSession } from './session.js'

interface Create {
  readonly session: McpSession
  readonly limit: CostLimit
  readonly kind: Kind | undefined
  readonly model: string | undefined
  readonly input: ModelInput
  readonly requestId: string
  readonly delivery: Delivery
  readonly labels: readonly string[]
}

/** Creates a run. `kind`: undefined for `create_model_run`, whose input is sent unchanged. */
export async function createRun(session: McpSession, kind: Kind | undefined, call: Call): Promise<Answer> {
  const { model, wait, dry_run, output, overwrite, request_id, labels, ...parameters } = call.args
  const create: Create = {
    session,
    limit: await session.limit(),
    kind,
    model: typeof model === 'string' ? model : kind && (await modelFor(session.ctx, kind)),
    input: kind === undefined ? (parameters.input as ModelInput) : parameters,
    requestId: typeof request_id === 'string' ? request_id : randomUUID(),
    delivery: { output: outputIn(session.options, output), overwrite: overwrite === true },
    labels: labelsOf(Array.isArray(labels) ? labels : [], 'labels'),
  }
  if (dry_run === true) return estimateRun(create, call)
  const job = jobOf(create)
  await session.wait([job], call, wait === false ? 'known' : 'done')
  const { ids, errors, warnings } = job
  if (ids.length === 0 && errors.length > 0) return { errors: errors.slice(0, 1), warnings }
  return runsAnswer([job], create.requestId, costOf(job, create))
}

/** Sends nothing. */
async function estimateRun(create: Create, call: Call): Promise<Answer> {
  const { session, limit } = create
  const job = session.start({}, async (own) => {
    own.estimate = limit.prices.estimate(await requestOf(create, own.ctx))
  })
  await session.finish([job], call)
  const { errors, warnings } = job
  if (errors.length > 0) return { errors, warnings }
  return { structured: { runs: [], ...costOf(job, create) }, warnings }
}

const costOf = ({ estimate }: Job, { limit }: Create) => ({
  estimate: estimate === undefined ? null : amountOf(estimate.millionths),
  currency: estimate?.currency ?? null,
  ...leftJson(limit),
})

/** The job of an earlier call with this request_id, or a new one. Throws `usage` if the earlier one has another input. */
function jobOf(create: Create): Job {
  const { session, kind, model, input, requestId, delivery } = create
  const key = `create ${requestId}`
  // As in the journal: the order of parameters, and whether the model is named, do not matter.
  const asked = `${kind} ${identityOf(model ?? '', input)}`
  const earlier = [...session.jobs].find(({ options, isStopped }) => options.key === key && !isStopped)
  if (earlier === undefined) return session.start({ key, asked, delivery }, (job) => payOnce(create, job))
  if (earlier.options.asked !== asked) throw otherRequest(create)
  return earlier
}

/** Creates the run, or follows the one that the journal has for this request_id. */
async function payOnce(create: Create, job: Job): Promise<void> {
  const earlier = create.model === undefined ? undefined : await earlierCreate(create, job.ctx)
  // Before images are read.
  if (create.model !== undefined && earlier === undefined) create.limit.checkRuns(1)
  const request = await requestOf(create, job.ctx)
  if (earlier !== undefined) return followEarlier(create, request, earlier, job)
  await createNew(create, request, job).catch((thrown: unknown) => job.errors.push(asRushesError(thrown)))
  if (!job.errors.some(({ exitCode }) => exitCode === EXIT.usage)) return
  // Another server may have sent this very create meanwhile, and its estimate may have reached a limit.
  const other = await earlierCreate(create, job.ctx)
  if (other === undefined) return
  job.errors.length = 0
  await followEarlier(create, request, other, job)
}

/** Throws if the journal cannot be read: the run could then be paid twice. */
async function earlierCreate({ requestId }: Create, ctx: Context): Promise<JournalRun | undefined> {
  const address = await ctx.address()
  return (await ctx.journal()).findByRequest(address, requestId)
}

/** The prompt is passed in `--input`, where "-" is plain text and not standard input. */
async function requestOf({ session, kind, model: named, input }: Create, ctx: Context) {
  const { model, body, ...request } = await buildRequest(ctx, {
    kind,
    model: named,
    input: writeJson(input),
    prompt: { words: [] },
    parameters: {},
    isTool: true,
    fileOf: (path, parameter) => fileIn(session.options, path, parameter),
  })
  if (model === undefined || body === undefined) throw await ctx.missingError(request.missing)
  return { ...request, model, body }
}

type CompleteRequest = Awaited<ReturnType<typeof requestOf>>

async function createNew(create: Create, request: CompleteRequest, job: Job): Promise<void> {
  const { limit, delivery, labels, requestId } = create
  const { ctx } = job
  job.estimate = limit.prices.estimate(request)
  await limit.check(() => limit.prices.sum([request]))
  const checked = await deliveryOf(ctx, { ...delivery, download: true }, { runs: 1 })
  checkTarget(checked, { runs: 1, kind: request.kind })
  const connection = await ctx.connect()
  await createRuns(ctx, {
    ...request,
    connection,
    delivery: checked,
    count: 1,
    wait: true,
    labels,
    requestId,
    observer: job,
    limit,
  })
  // The call was cancelled before the create was sent.
  if (job.ids.length === 0 && job.errors.length === 0) throw new Interruption('SIGTERM')
}

async function followEarlier(
  create: Create,
  { model, input, media }: CompleteRequest,
  earlier: JournalRun,
  job: Job,
): Promise<void> {
  if (earlier.identity !== identityOf(model, input, undefined, media)) throw otherRequest(create)
  const id = idOf(earlier, create)
  job.estimate = earlier.estimate
  job.addRun(id)
  const options = { ...create.delivery, download: true }
  await revisit(job.ctx, [id], options, { observer: job })
}

/** Returns the id of an earlier create's run. Throws if it has no id, or none yet. */
function idOf({ id, key = '', phase }: JournalRun, { requestId }: Create): string {
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

const otherRequest = ({ requestId }: Create): RushesError =>
  usageError(
    `The request_id "${requestId}" was used for a create with another model or input. Nothing was sent.`,
    'Use a new request_id for another run, or repeat the call with the same arguments.',
  )
