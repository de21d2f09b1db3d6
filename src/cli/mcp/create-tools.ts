/** The tools that create runs. */
import { randomUUID } from 'node:crypto'
import { EXIT, RushesError, usageError } from '../../errors.js'
import { Interruption } from '../../host/interrupts.js'
import { identityOf } from '../../journal/identity.js'
import type { JournalRun } from '../../journal/index.js'
import { writeJson } from '../../protocol/json.js'
import { imageSourceOf } from '../../protocol/media.js'
import type { Kind, ModelDocument } from '../../protocol/models.js'
import { amountOf } from '../../protocol/price.js'
import { inputProblems } from '../../protocol/validate.js'
import type { Context } from '../context/context.js'
import { type DeliveryOptions, deliveryOf } from '../flags/delivery.js'
import { labelsOf } from '../flags/labels.js'
import type { CostLimit } from '../models/cost-limit.js'
import { checkTarget } from '../runs/check-target.js'
import { createRuns } from '../runs/create-runs.js'
import { buildRequest, type RequestOptions } from '../runs/request.js'
import { revisit } from '../runs/revisit.js'
import { modelFor } from '../settings/required-settings.js'
import { errorAnswer, leftJson, leftText, notReady, runResult, runsAnswer } from './answers.js'
import type { JobObserver } from './job.js'
import {
  limitOf,
  type McpSession,
  type SavedDelivery,
  type SessionTask,
  startTask,
  waitFor,
} from './session.js'
import { type Answer, type Arguments, type Call, nameOf } from './tool.js'

interface CreateArguments {
  readonly wait: boolean
  /** Whether the call only asks for the estimate. */
  readonly isDryRun: boolean
  readonly labels: readonly string[]
  readonly requestId: string
  readonly model: string | undefined
  readonly input: Arguments
  /** Whether `image_urls` of the input may contain paths. Other inputs are sent unchanged. */
  readonly takesImages: boolean
  readonly delivery: SavedDelivery
}

/** Creates a run. `kind`: undefined for `create_model_run`, whose input is sent unchanged. */
export async function createRun(session: McpSession, kind: Kind | undefined, call: Call): Promise<Answer> {
  const parsed = await argumentsOf(session, kind, call.args)
  const { requestId, delivery, wait, isDryRun } = parsed
  const limit = await limitOf(session)
  const key = {
    name: `create ${requestId}`,
    // Compared like in the journal: the order of parameters, and whether the model is named, do not matter.
    arguments: `${kind} ${identityOf((await modelOf(session.base, kind, parsed.model)) ?? '', parsed.input)}`,
  }
  const known = isDryRun ? undefined : joined(session, key, requestId)
  const { job } = known ?? startCreate()
  await waitFor(session, wait ? job.done : job.known, {
    call,
    jobs: [job],
    describe: () =>
      `${job.id ?? 'creating the run'}: ${(job.id && job.states.get(job.id)?.status) || 'waiting'}`,
  })
  const outcome = job.isDone ? await job.done : undefined
  const creator = kind === undefined ? 'create_model_run' : `create_${kind}`
  if (isDryRun && outcome === undefined)
    throw notReady('The estimate', `Call ${creator} again with the same arguments to continue waiting.`)
  const { warnings } = job.collected
  const [first] = outcome?.errors ?? []
  if (job.id === undefined && first !== undefined) return errorAnswer(first, warnings)
  return runsAnswer(isDryRun ? [] : [runResult(job, outcome, { requestId })], {
    warnings,
    creator,
    ...estimateOf(job, limit, isDryRun),
  })

  function startCreate(): SessionTask {
    return startTask(session, isDryRun ? {} : { key, delivery, isCreate: true }, (ctx, observer) =>
      create(ctx, { ...parsed, limit, kind, observer }),
    )
  }
}

/** Returns the estimate of a create, and what the session has left, for its answer. */
function estimateOf({ estimate }: SessionTask['job'], limit: CostLimit, isDryRun: boolean) {
  const { millionths, currency } = estimate ?? {}
  const amount = millionths === undefined ? undefined : amountOf(millionths)
  const text =
    amount === undefined ? 'no estimate: the model is without a price' : `estimate: ${amount} ${currency}`
  const isShown = isDryRun || amount !== undefined || limit.maxCost !== undefined
  return {
    line: isShown ? `${text}; ${isDryRun ? 'nothing was sent; ' : ''}${leftText(limit)}` : undefined,
    further: { estimate: amount ?? null, currency: currency ?? null, ...leftJson(limit) },
  }
}

async function argumentsOf(
  session: McpSession,
  kind: Kind | undefined,
  args: Arguments,
): Promise<CreateArguments> {
  const { model, wait, output, overwrite, request_id, dry_run, labels, ...rest } = args
  const input = kind === undefined ? (rest.input as Arguments) : rest
  const models = await session.base.models()
  const document = typeof model === 'string' ? models.find(model) : undefined
  if (document !== undefined && document.kind === (kind ?? document.kind)) checkInput(document, input)
  const takesImages = kind !== undefined || Object.hasOwn(document?.input.properties ?? {}, 'image_urls')
  const images = takesImages ? input.image_urls : undefined
  return {
    wait: wait !== false,
    isDryRun: dry_run === true,
    labels: labelsOf(Array.isArray(labels) ? labels : [], 'labels'),
    requestId: typeof request_id === 'string' ? request_id : randomUUID(),
    model: typeof model === 'string' ? model : undefined,
    input: Array.isArray(images) ? { ...input, image_urls: images.map(imageIn(session)) } : input,
    takesImages,
    delivery: {
      output: session.state.paths.output(typeof output === 'string' ? output : undefined),
      overwrite: overwrite === true,
    },
  }
}

/** Checks the input of a model that the call names: its parameters may differ from those of the tool. */
function checkInput({ name, input: schema }: ModelDocument, input: Arguments): void {
  const problems = inputProblems(schema, input)
  if (problems.length > 0)
    throw usageError(
      problems.map(({ parameter, message }) => `${nameOf(parameter)} ${message}.`).join(' '),
      `See the parameters of ${name} with list_models.`,
    )
}

const modelOf = async (ctx: Context, kind: Kind | undefined, model: string | undefined) =>
  model ?? (kind && (await modelFor(ctx, kind)))

/** Returns the absolute path of a local image, and any other reference unchanged. */
const imageIn =
  ({ state: { paths } }: McpSession) =>
  (source: string): string => {
    const form = imageSourceOf(source)
    if (form === 'blank' || form === 'standard input')
      throw usageError(
        'image_urls has an empty entry.',
        'Use an http(s) URL, a data: URL, a path, or run:<id> for an output of an earlier run.',
      )
    return form === 'path' || form === 'row' ? paths.file(source, 'image_urls') : source
  }

/** Returns the task of an earlier call for the same create. */
function joined(
  session: McpSession,
  key: NonNullable<SessionTask['key']>,
  requestId: string,
): SessionTask | undefined {
  const task = [...session.state.running].find((each) => each.key?.name === key.name)
  if (task !== undefined && task.key?.arguments !== key.arguments) throw otherRequest(requestId)
  return task
}

interface CreateJob extends CreateArguments {
  readonly limit: CostLimit
  readonly kind: Kind | undefined
  readonly observer: JobObserver
}

async function create(ctx: Context, job: CreateJob): Promise<void> {
  const { limit, kind, model, input, takesImages, requestId, delivery, isDryRun, observer } = job
  const { prices } = limit
  const hasModel = (await modelOf(ctx, kind, model)) !== undefined
  const earlier = hasModel && !isDryRun ? await earlierCreate(ctx, requestId) : undefined
  // Check the number of runs before reading images.
  if (hasModel && earlier === undefined && !isDryRun) limit.checkRuns(1)
  const { image_urls: _, ...others } = input
  const sent = requestOptions(kind, model, hasModel ? input : others, takesImages)
  const request = await buildRequest(ctx, sent)
  if (request.model === undefined || request.body === undefined) throw await ctx.missingError(request.missing)
  const options: DeliveryOptions = { ...delivery, download: true }
  if (earlier !== undefined) {
    if (earlier.identity !== identityOf(request.model, request.input)) throw otherRequest(requestId)
    const id = idOf(earlier, requestId)
    observer.onFound(id, earlier.estimate)
    await revisit(ctx, [id], options, { many: 'same command', observer })
    return
  }
  const estimate = prices.estimate(request)
  observer.onFound(undefined, estimate)
  if (isDryRun) return
  await limit.check(() => prices.sum([request]))
  const checked = await deliveryOf(ctx, options, { runs: 1 })
  checkTarget(ctx, checked, { runs: 1, kind: request.kind })
  const connection = await ctx.connect()
  let isSent = false
  await createRuns(ctx, {
    connection,
    delivery: checked,
    count: 1,
    kind: request.kind,
    model: request.model,
    input: request.input,
    body: request.body,
    wait: true,
    labels: job.labels,
    limit,
    requestId,
    observer: {
      ...observer,
      see(event) {
        isSent ||= event.is === 'created' || (event.is === 'ended' && event.result.is === 'unconfirmed')
        observer.see(event)
      },
    },
  })
  // The call was cancelled before the create was sent.
  if (!isSent && observer.noCreates.aborted) throw new Interruption('SIGTERM')
}

/** Finds an earlier create with this request id. Throws if the journal cannot be read: it could then be paid twice. */
async function earlierCreate(ctx: Context, requestId: string): Promise<JournalRun | undefined> {
  const address = await ctx.address()
  return (await ctx.journal()).findByRequest(address, requestId)
}

/** The prompt is passed in `--input`, where "-" is plain text and not standard input. */
function requestOptions(
  kind: Kind | undefined,
  model: string | undefined,
  input: Arguments,
  takesImages: boolean,
): RequestOptions {
  const { image_urls: images, ...others } = input
  const isList = takesImages && Array.isArray(images)
  return {
    kind,
    model,
    input: writeJson(isList ? others : input),
    prompt: { words: [] },
    parameters: isList ? { image_urls: images } : {},
  }
}

/** Returns the id of an earlier create's run. Throws if it has no id, or none yet. */
function idOf(run: JournalRun, requestId: string): string {
  if (run.id !== undefined) return run.id
  const key = run.key ?? ''
  if (run.phase === 'sending')
    throw new RushesError(
      'submission_unknown',
      `The create with the request_id "${requestId}" was sent by another process and is not answered yet ` +
        `(${key}). Nothing was sent again.`,
      { exitCode: EXIT.outcomeUnknown, hint: 'Call again in a few seconds, with the same request_id.' },
    )
  throw new RushesError(
    'submission_unknown',
    `The outcome of the create with the request_id "${requestId}" is unknown (${key}): a run may exist and cost ` +
      `money. Nothing was sent again.`,
    {
      exitCode: EXIT.outcomeUnknown,
      hint:
        `Ask the user to check the runs of the account. See it with \`rushes show ${key}\`. If the run does ` +
        `not exist, create it with another request_id.`,
    },
  )
}

const otherRequest = (requestId: string): RushesError =>
  usageError(
    `The request_id "${requestId}" was used for a create with another model or input. Nothing was sent.`,
    'Use a new request_id for another run, or repeat the call with the same arguments.',
  )
