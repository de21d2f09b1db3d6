/**
 * The protocol side of `rushes mcp`: which tools there are, checked arguments, progress notifications, cancellation, errors
 * as results. What a tool does is given. Only this file and the transport know the SDK.
 */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import {
  CallToolRequestSchema,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
  type ServerNotification,
} from '@modelcontextprotocol/sdk/types.js'
import { nearest } from '../protocol/nearest.js'
import { shortened } from '../protocol/text.js'
import { checkArguments } from './check-arguments.js'
import { type CallResult, type ReadBytes, resultOf } from './result.js'
import type { Answer, Tools } from './tool.js'

export interface McpServerOptions {
  readonly version: string
  readonly instructions: string
  readonly tools: Tools
  readonly clock: { monotonic(): number }
  readonly read: ReadBytes
  /** The answer for what a tool or the check of its arguments has thrown. */
  answerOfError(thrown: unknown): Answer
  log(text: string): void
}

export interface McpServer {
  connect(transport: Transport): Promise<void>
  /** Resolves when the transport is closed. */
  readonly closed: Promise<void>
  close(): Promise<void>
}

export function createMcpServer(options: McpServerOptions): McpServer {
  const { version, instructions, tools, log } = options
  const server = new Server({ name: 'rushes', version }, { capabilities: { tools: {} }, instructions })
  const closed = new Promise<void>((resolve) => {
    server.onclose = resolve
  })
  server.onerror = (error) => log(`Protocol error, message ignored: ${shortened(error.message, 200)}`)

  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: tools.map(({ definition }) => ({ ...definition })) as never,
  }))

  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal, _meta, sendNotification }) => {
    const tool = tools.find(({ definition }) => definition.name === params.name)
    if (tool === undefined) throw unknownTool(params.name, tools)
    const progress = createProgress(_meta?.progressToken, sendNotification, options)
    try {
      const args = params.arguments ?? {}
      checkArguments(tool.definition, args)
      return await resultOf(await tool.call({ args, signal, progress }), options.read)
    } catch (thrown) {
      return (await resultOf(options.answerOfError(thrown), options.read)) satisfies CallResult
    }
  })

  return {
    connect: (transport) => server.connect(transport),
    closed,
    close: () => server.close(),
  }
}

function unknownTool(name: string, tools: Tools): McpError {
  const names = tools.map(({ definition }) => definition.name)
  const near = nearest(name, names)
  return new McpError(
    ErrorCode.InvalidParams,
    `Unknown tool "${shortened(name, 60)}".${near === undefined ? '' : ` Did you mean "${near}"?`} Tools: ${names.join(', ')}.`,
  )
}

/** Each notification must have a larger value than the one before: the seconds since the call. */
function createProgress(
  progressToken: string | number | undefined,
  send: (notification: ServerNotification) => Promise<void>,
  { clock, log }: McpServerOptions,
): (message: string) => void {
  if (progressToken === undefined) return () => {}
  const startedAtMs = clock.monotonic()
  let last = 0
  return (message) => {
    const seconds = Math.round(clock.monotonic() - startedAtMs) / 1_000
    last = Math.max(last + 0.001, seconds)
    const params = { progressToken, progress: last, message }
    send({ method: 'notifications/progress', params }).catch((error) => log(String(error)))
  }
}
