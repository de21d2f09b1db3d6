/** Serves one MCP client on standard input and output until it disconnects or a signal arrives. Only this file runs code of the SDK. */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import {
  CallToolRequestSchema,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
} from '@modelcontextprotocol/sdk/types.js'
import { Ajv } from 'ajv'
import { EXIT, usageError } from '../../errors.js'
import { untilAborted } from '../../host/abort.js'
import { asRushesError } from '../../host/interrupts.js'
import { findInexact } from '../../protocol/models.js'
import { amountText } from '../../protocol/price.js'
import { shortened } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { VERSION } from '../process/version.js'
import { modelsByKind } from '../settings/settings.js'
import { type Answer, resultOf } from './answers.js'
import { createWithTool } from './create.js'
import { type SessionFacts, type Tool, type ToolName, toolsFor } from './definitions.js'
import { type Call, McpSession, type SessionOptions } from './session.js'
import { cancelRuns, listModels, listRuns, planBatch, runBatch, showRun, waitRuns } from './tools.js'

const CALLS: Readonly<Record<ToolName, (session: McpSession, call: Call) => Promise<Answer>>> = {
  list_models: listModels,
  create_image: (session, call) => createWithTool(session, 'image', call),
  create_video: (session, call) => createWithTool(session, 'video', call),
  create_model_run: (session, call) => createWithTool(session, undefined, call),
  wait_run: waitRuns,
  cancel_run: cancelRuns,
  list_runs: listRuns,
  show_run: showRun,
  plan_batch: planBatch,
  run_batch: runBatch,
}

const isTool = (name: string): name is ToolName => Object.hasOwn(CALLS, name)

/** Returns the exit code: 0 when the client has disconnected. */
export async function serveMcp(ctx: Context, options: SessionOptions): Promise<number> {
  const { out, interrupts, stdout } = ctx
  const session = new McpSession(ctx, options)
  const stdin = ctx.stdin()
  const server = new Server({ name: 'rushes', version: VERSION }, { capabilities: { tools: {} } })
  // The transport does not detect the end of its input. It closes itself only after a message that is too large.
  const disconnected = new Promise<'by its client' | 'by the transport'>((resolve) => {
    server.onclose = () => resolve('by the transport')
    for (const end of ['end', 'close', 'error']) stdin.once(end, () => resolve('by its client'))
  })
  server.onerror = (error) => out.note(`Protocol error: ${shortened(error.message, 200)}`)
  server.setRequestHandler(ListToolsRequestSchema, async () => {
    const tools = Object.entries(toolsFor(await factsOf(session)))
    return { tools: tools.map(([name, tool]) => ({ name, ...tool })) as never }
  })
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
    const { name, arguments: args = {} } = params
    if (!isTool(name)) throw new McpError(ErrorCode.InvalidParams, `Unknown tool "${shortened(name, 60)}".`)
    return resultOf(await answerOf(session, name, { args, sinceMs: ctx.clock.monotonic(), signal }))
  })
  await server.connect(new StdioServerTransport(stdin, stdout))
  const ended = await Promise.race([disconnected, untilAborted(interrupts.first)])
  if (ended === 'by the transport')
    out.warn('A message had more than 10 MiB, so this server ends. Give images as paths.')
  const reason = interrupts.first.aborted ? interrupts.first.reason : undefined
  await session.close(reason === undefined || reason.by === 'stdout closed' ? 'SIGHUP' : reason.by)
  await server.close()
  return reason?.exitCode ?? EXIT.ok
}

async function answerOf(session: McpSession, name: ToolName, call: Call): Promise<Answer> {
  const check = async () => checkArguments(name, toolsFor(await factsOf(session))[name], call.args)
  try {
    // A parameter that the kept list does not have may be one that the service has by now.
    await (name.startsWith('create_') ? (await session.ctx.models()).checked(check) : check())
    return await CALLS[name](session, call)
  } catch (thrown) {
    return { errors: [asRushesError(thrown)] }
  }
}

/**
 * What the definitions say. Settings that cannot be read are reported by each call: a server that does not start shows an
 * agent nothing.
 */
async function factsOf(session: McpSession): Promise<SessionFacts> {
  const { ctx, options } = session
  const { maxRuns } = options
  const { local } = ctx.globals
  try {
    const { maxCost, prices } = await session.limit()
    const models = await ctx.models()
    const documents = Object.entries(await modelsByKind(ctx))
      .map(([kind, name]) => [kind, models.find(name)] as const)
      .filter(([kind, document]) => document?.kind === kind)
    return {
      maxRuns,
      maxCost: maxCost === undefined ? undefined : amountText(maxCost, prices.currency),
      isLocal: local && models.list().every(({ document }) => document.cost === undefined),
      documents: Object.fromEntries(documents),
    }
  } catch {
    return { maxRuns, maxCost: undefined, isLocal: local, documents: {} }
  }
}

/** Throws `usage` with the first problem. */
export function checkArguments(name: string, { inputSchema }: Tool, args: Call['args']): void {
  const inexact = findInexact(args)
  if (inexact !== undefined)
    throw usageError(
      `${shortened(inexact.join('.'), 100)} is a number whose digits cannot be kept. Nothing was sent.`,
      'Use a smaller number, or a string if the model accepts one.',
    )
  // Not kept: the schemas follow from documents, which change. They are valid; to validate them would take 30 ms a call.
  const isValid = new Ajv({ strict: false, validateSchema: false }).compile(inputSchema)
  if (isValid(args)) return
  const [{ instancePath = '', message = '', params = {} } = {}] = isValid.errors ?? []
  // Ajv names neither of them.
  const { allowedValues, additionalProperty: unknown } = params
  const named = unknown === undefined ? allowedValues?.join(', ') : `"${shortened(unknown, 100)}"`
  throw usageError(
    `${instancePath.slice(1) || name} ${message}${named === undefined ? '' : `: ${named}`}.`,
    `Parameters of ${name}: ${Object.keys(inputSchema.properties).join(', ')}.`,
  )
}
