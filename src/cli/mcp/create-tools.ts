/** The tools that create runs. */
import { randomUUID } from 'node:crypto'
import { EXIT, RushesError, usageError } from '../../errors.js'
import { Interruption } from '../../host/interrupts.js'
import type { JournalRun } from '../../journal/index.js'
import { identityOf } from '../../protocol/identity.js'
import { writeJson } from '../../protocol/json.js'
import type { Kind, ModelDocument } from '../../protocol/models.js'
import { amountOf, sumOf } from '../../protocol/price.js'
import { inputProblems } from '../../protocol/validate.js'
import type { Context } from '../context/context.js'
import { type DeliveryOptions, deliveryOf } from '../flags/delivery.js'
import { labelsOf } from '../flags/labels.js'
import { checkTarget } from '../runs/check-target.js'
import { createRuns } from '../runs/create-runs.js'
import { buildRequest, type RequestOptions } from '../runs/request.js'
import { revisit } from '../runs/revisit.js'
import { modelFor } from '../settings/required-settings.js'
import { leftJson, leftText } from './allowance.js'
import { errorAnswer, notReady, runResult, runsAnswer } from './answers.js'
import type { JobObserver } from './job.js'
import {
  type McpSession,
  moneyOf,
  type SavedDelivery,
  type SessionMoney,
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
  readonly delivery: SavedDelivery
}

/** Creates a run. `kind`: undefined for `create_model_run`, whose input is sent unchanged. */
export async function createRun(session: McpSession, kind: Kind | undefined, call: Call): Promise<Answer> {
  const parsed = await argumentsOf(session, kind, call.args)
  const { requestId, delivery, wait, isDryRun } = parsed
  const money = await moneyOf(session)
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
    ...estimateOf(job, money, isDryRun),
  })

  function startCreate(): SessionTask {
    return startTask(session, isDryRun ? {} : { key, delivery, isCreate: true }, (ctx, observer) =>
      create(ctx, { ...parsed, session, money, kind, observer }),
    )
  }
}

/** Returns the estimate of a create, and what the session has left, for its answer. */
function estimateOf({ estimate }: SessionTask['job'], { allowance }: SessionMoney, isDryRun: boolean) {
  const { millionths, currency } = estimate ?? {}
  const amount = millionths === undefined ? undefined : amountOf(millionths)
  const text =
    amount === undefined ? 'no estimate: the model is without a price' : `estimate: ${amount} ${currency}`
  const isShown = isDryRun || amount !== undefined || allowance.maxCost !== undefined
  return {
    line: isShown ? `${text}; ${isDryRun ? 'nothing was sent; ' : ''}${leftText(allowance)}` : undefined,
    further: { estimate: amount ?? null, currency: currency ?? null, ...leftJson(allowance) },
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
  return {
    wait: wait !== false,
    isDryRun: dry_run === true,
    labels: labelsOf(Array.isArray(labels) ? labels : [], 'labels'),
    requestId: typeof request_id === 'string' ? request_id : randomUUID(),
    model: typeof model === 'string' ? model : undefined,
    input,
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
  readonly session: McpSession
  readonly money: SessionMoney
  readonly kind: Kind | undefined
  readonly observer: JobObserver
}

async function create(ctx: Context, job: CreateJob): Promise<void> {
  const { money, session, kind, model, input, requestId, delivery, isDryRun, observer } = job
  const { prices, allowance } = money
  const hasModel = (await modelOf(ctx, kind, model)) !== undefined
  const earlier = hasModel && !isDryRun ? await earlierCreate(ctx, requestId) : undefined
  // Check the number of runs before reading images.
  if (hasModel && earlier === undefined && !isDryRun) allowance.check(1, sumOf([0]))
  const request = await buildRequest(ctx, requestOptions(session, kind, model, input))
  if (request.model === undefined || request.body === undefined) throw await ctx.missingError(request.missing)
  const options: DeliveryOptions = { ...delivery, download: true }
  if (earlier !== undefined) {
    if (earlier.identity !== identityOf(request.model, request.input, undefined, request.media))
      throw otherRequest(requestId)
    const id = idOf(earlier, requestId)
    observer.onFound(id, earlier.estimate)
    await revisit(ctx, [id], options, { many: 'same command', observer })
    return
  }
  if (allowance.maxCost !== undefined && !isDryRun) await prices.renew([request.model])
  const estimate = prices.estimate({ ...request, model: request.model })
  observer.onFound(undefined, estimate)
  if (isDryRun) return
  const sum = sumOf([estimate?.millionths])
  allowance.check(1, sum)
  const checked = await deliveryOf(ctx, options, { runs: 1 })
  checkTarget(ctx, checked, { runs: 1, kind: request.kind })
  const connection = await ctx.connect()
  allowance.take(1, sum)
  let isSent = false
  try {
    await createRuns(ctx, {
      connection,
      delivery: checked,
      count: 1,
      kind: request.kind,
      model: request.model,
      input: request.input,
      media: request.media,
      body: request.body,
      wait: true,
      labels: job.labels,
      requestId,
      observer: {
        ...observer,
        see(event) {
          isSent ||= event.is === 'created' || (event.is === 'ended' && event.result.is === 'unconfirmed')
          observer.see(event)
        },
      },
      estimate: () => estimate,
    })
    // The call was cancelled before the create was sent.
    if (!isSent && observer.noCreates.aborted) throw new Interruption('SIGTERM')
  } finally {
    if (!isSent) allowance.giveBack(1, sum.millionths)
  }
}

/** Finds an earlier create with this request id. Throws if the journal cannot be read: it could then be paid twice. */
async function earlierCreate(ctx: Context, requestId: string): Promise<JournalRun | undefined> {
  const address = await ctx.address()
  return (await ctx.journal()).findByRequest(address, requestId)
}

/** The prompt is passed in `--input`, where "-" is plain text and not standard input. */
const requestOptions = (
  { state: { paths } }: McpSession,
  kind: Kind | undefined,
  model: string | undefined,
  input: Arguments,
): RequestOptions => ({
  ...{ kind, model, input: writeJson(input), prompt: { words: [] }, parameters: {} },
  fileOf: (path, parameter) => paths.file(path, parameter),
})

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
