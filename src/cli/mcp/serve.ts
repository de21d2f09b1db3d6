/** Serves one MCP client until it disconnects or a signal arrives. */
import { EXIT } from '../../errors.js'
import { untilAborted } from '../../host/abort.js'
import { amountText } from '../../protocol/price.js'
import type { Context } from '../context/context.js'
import { modelsByKind } from '../settings/required-settings.js'
import { type Finished, planBatch, runBatch } from './batch-tools.js'
import { createRun } from './create-tools.js'
import {
  definitionsFor,
  instructionsFor,
  type SessionFacts,
  type SessionLimits,
  type ToolName,
} from './definitions.js'
import { followRuns, getRuns, listModels, listRuns, showRun } from './run-tools.js'
import { serveStdio } from './server.js'
import {
  closeSession,
  limitOf,
  type McpSession,
  type McpSessionOptions,
  openSession,
  sessionOf,
} from './session.js'
import type { Answer, Call, Tools } from './tool.js'

/** Returns the exit code: 0 when the client has disconnected. */
export async function serveMcp(ctx: Context, options: McpSessionOptions): Promise<number> {
  const { out, interrupts } = ctx
  const state = openSession(ctx, options)
  const session = sessionOf(state)
  const finished: Finished = new Map()
  const stdin = ctx.stdin()
  if (stdin.isTTY === true)
    out.note(
      'An MCP client starts this server and sends it messages on standard input. Press Ctrl-C to stop.',
    )
  const { disconnected, close } = await serveStdio(ctx, {
    stdin,
    instructions: instructionsFor(await limitsOf(session)),
    tools: async () => toolsOf(session, finished),
  })
  await Promise.race([disconnected, untilAborted(interrupts.first)])
  const reason = interrupts.first.aborted ? interrupts.first.reason : undefined
  await closeSession(state, reason === undefined || reason.by === 'stdout closed' ? 'SIGHUP' : reason.by)
  await close()
  return reason?.exitCode ?? EXIT.ok
}

/**
 * Returns the documents of the configured models. None if the settings cannot be read: each call reports that, and a
 * server that does not start shows an agent nothing.
 */
async function documentsOf(ctx: Context): Promise<SessionFacts['documents']> {
  try {
    const [models, names] = [await ctx.models(), Object.entries(await modelsByKind(ctx))]
    const found = names.map(([kind, name]) => [kind, models.find(name)] as const)
    return Object.fromEntries(found.filter(([kind, document]) => document?.kind === kind))
  } catch {
    return {}
  }
}

/** No limit of the estimates if the settings cannot be read: then nothing is created. */
async function limitsOf(session: McpSession): Promise<SessionLimits> {
  const { base, state } = session
  const limit = await limitOf(session).catch(() => undefined)
  const maxCost = limit?.maxCost === undefined ? undefined : amountText(limit.maxCost, limit.prices.currency)
  return { maxRuns: state.options.maxRuns, maxCost, isLocal: base.globals.local && (await isFree(base)) }
}

/** Whether no provider charges for a model of the local service. */
async function isFree(ctx: Context): Promise<boolean> {
  try {
    return (await ctx.models()).list().every(({ document }) => document.cost === undefined)
  } catch {
    // Nothing is created with settings that cannot be read.
    return true
  }
}

/** Returns the tools for a call: each definition with its function. */
async function toolsOf(session: McpSession, finished: Finished): Promise<Tools> {
  const facts = { ...(await limitsOf(session)), documents: await documentsOf(session.base) }
  const calls: Readonly<Record<ToolName, (call: Call) => Promise<Answer>>> = {
    list_models: (call) => listModels(session, call),
    create_image: (call) => createRun(session, 'image', call),
    create_video: (call) => createRun(session, 'video', call),
    create_model_run: (call) => createRun(session, undefined, call),
    wait_run: (call) => followRuns(session, call, { isDownload: false }),
    get_run: (call) => getRuns(session, call),
    cancel_run: (call) => getRuns(session, call, 'cancel_run'),
    list_runs: (call) => listRuns(session, call),
    show_run: (call) => showRun(session, call),
    download_run: (call) => followRuns(session, call, { isDownload: true }),
    plan_batch: (call) => planBatch(session, call),
    run_batch: (call) => runBatch(session, finished, call),
  }
  return definitionsFor(facts).map((definition) => ({ definition, call: calls[definition.name] }))
}
