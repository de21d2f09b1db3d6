/**
 * MCP protocol of `rushes mcp`: lists the tools, checks arguments, sends progress notifications, cancels calls, and
 * returns errors as results. Only this file runs code of the SDK.
 */
import { pipeline, type Readable, Transform } from 'node:stream'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import {
  CallToolRequestSchema,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
  type ServerNotification,
} from '@modelcontextprotocol/sdk/types.js'
import { usageError } from '../../errors.js'
import { asRushesError } from '../../host/interrupts.js'
import { MAX_BODY_BYTES } from '../../protocol/limits.js'
import type { ParameterSchema } from '../../protocol/models.js'
import { findInexact } from '../../protocol/parameters.js'
import { isObject } from '../../protocol/parse.js'
import { didYouMean, shortened } from '../../protocol/text.js'
import { inputProblems } from '../../protocol/validate.js'
import type { Context } from '../context/context.js'
import { VERSION } from '../process/version.js'
import { errorAnswer } from './answers.js'
import {
  type Arguments,
  type Call,
  type JsonSchema,
  nameOf,
  resultOf,
  type ToolDefinition,
  type Tools,
} from './tool.js'

interface McpServerOptions {
  readonly stdin: Readable
  readonly instructions: string
  /** Returns the tools as they are now: their parameters follow from the documents of models. */
  tools(): Promise<Tools>
}

interface McpServer {
  /** Resolves when the client has disconnected. */
  readonly disconnected: Promise<void>
  close(): Promise<void>
}

/**
 * Serves standard input and output. Resolves when the server reads its input. The SDK closes the session if a message is
 * larger than a body may be.
 */
export async function serveStdio(
  { stdout, clock, out }: Context,
  { stdin, instructions, tools }: McpServerOptions,
): Promise<McpServer> {
  const options = { capabilities: { tools: {} }, instructions }
  const server = new Server({ name: 'rushes', version: VERSION }, options)
  const closed = new Promise<void>((resolve) => {
    server.onclose = resolve
  })
  server.onerror = (error) => out.note(`Protocol error, message ignored: ${shortened(error.message, 200)}`)

  server.setRequestHandler(ListToolsRequestSchema, async () => ({
    tools: (await tools()).map(({ definition }) => ({ ...definition })) as never,
  }))

  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal, _meta, sendNotification }) => {
    const sinceMs = clock.monotonic()
    const known = await tools()
    const tool = known.find(({ definition }) => definition.name === params.name)
    if (tool === undefined) throw unknownTool(params.name, known)
    const progress = createProgress(_meta?.progressToken, sendNotification, { clock, out, sinceMs })
    try {
      const args = params.arguments ?? {}
      checkArguments(tool.definition, args)
      return resultOf(await tool.call({ args, sinceMs, signal, progress }))
    } catch (thrown) {
      return resultOf(errorAnswer(asRushesError(thrown)))
    }
  })

  const lines = createWholeLines(MAX_BODY_BYTES)
  // The transport does not detect the end of its input.
  const ended = new Promise<void>((resolve) => void pipeline(stdin, lines, () => resolve()))
  await server.connect(new StdioServerTransport(lines, stdout, { maxBufferSize: MAX_BODY_BYTES }))
  return { disconnected: Promise.race([ended, closed]), close: () => server.close() }
}

function unknownTool(name: string, tools: Tools): McpError {
  const names = tools.map(({ definition }) => definition.name)
  return new McpError(
    ErrorCode.InvalidParams,
    `Unknown tool "${shortened(name, 60)}".${didYouMean(name, names)} Tools: ${names.join(', ')}.`,
  )
}

/**
 * Sends progress notifications. Each value must be larger than the one before, so it is the number of seconds since the
 * call.
 */
function createProgress(
  progressToken: string | number | undefined,
  send: (notification: ServerNotification) => Promise<void>,
  { clock, out, sinceMs }: Pick<Context, 'clock' | 'out'> & Pick<Call, 'sinceMs'>,
): (message: string) => void {
  if (progressToken === undefined) return () => {}
  let last = 0
  return (message) => {
    const seconds = Math.round(clock.monotonic() - sinceMs) / 1_000
    last = Math.max(last + 0.001, seconds)
    const params = { progressToken, progress: last, message }
    send({ method: 'notifications/progress', params }).catch((error) => out.note(String(error)))
  }
}

/** Checks the arguments of a call. Throws `usage` with all problems. */
export function checkArguments({ name, inputSchema }: ToolDefinition, args: Arguments): void {
  const deep = Object.keys(args).find((each) => !isWithinLevels(args[each], MAX_LEVELS))
  if (deep !== undefined)
    throw usageError(
      `${shortened(deep, 60)} is nested more than ${MAX_LEVELS} levels deep. Nothing was sent.`,
    )
  const inexact = findInexact(args)
  if (inexact !== undefined)
    throw usageError(
      `${shortened(inexact.join('.'), 100)} is a number whose digits cannot be kept: it is beyond ` +
        `${Number.MAX_SAFE_INTEGER}. Nothing was sent.`,
      'Use a smaller number, or a string if the model accepts one.',
    )
  const { properties, required = [] } = inputSchema
  const known = Object.keys(properties)
  const schema = {
    type: 'object',
    title: name,
    description: '',
    required,
    properties: Object.fromEntries(Object.entries(properties).map(([each, of]) => [each, parameterOf(of)])),
  } as const
  const lines = [
    ...Object.keys(args)
      .filter((each) => !Object.hasOwn(properties, each))
      .map((each) => `Unknown parameter "${shortened(each, 60)}".${didYouMean(each, known)}`),
    ...inputProblems(schema, args).map(({ parameter, message }) => `${nameOf(parameter)} ${message}.`),
    ...known.flatMap((each) =>
      Object.hasOwn(args, each) ? formProblems(each, properties[each], args[each]) : [],
    ),
  ]
  if (lines.length > 0) throw usageError(lines.join(' '), `Parameters of ${name}: ${known.join(', ')}.`)
}

/** Values of other types are checked by `formProblems`, or only by the document of the model. */
const parameterOf = (schema: JsonSchema): ParameterSchema =>
  schema.type === undefined || schema.type === 'object'
    ? { type: 'other', description: '', json: schema }
    : (schema as unknown as ParameterSchema)

/** Checks the keywords of tools that the inputs of models do not have. */
function formProblems(name: string, schema: JsonSchema = {}, value: unknown): readonly string[] {
  if (schema.type === 'object') return isObject(value) ? [] : [`${name} must be a JSON object.`]
  if (schema.type === 'array' && Array.isArray(value)) {
    if (value.length === 0 && schema.minItems !== undefined) return [`${name} is empty.`]
    return value.flatMap((each, at) =>
      formProblems(nameOf(`${name}/${at}`), schema.items as JsonSchema, each),
    )
  }
  return value === '' && schema.minLength !== undefined ? [`${name} is empty.`] : []
}

/** Maximum nesting of arguments. Deeper values would overflow the stack of recursive functions. */
const MAX_LEVELS = 500

function isWithinLevels(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every((each) => isWithinLevels(each, levels - 1))
}

const LINE_END = 0x0a

/**
 * Joins the chunks of a line. The SDK copies and searches the whole line again at each chunk: 40 MiB would block the
 * process for a minute. Passes a line longer than `maxBytes` in parts, which the SDK refuses.
 */
export function createWholeLines(maxBytes: number): Transform {
  let chunks: Buffer[] = []
  let bytes = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      chunks.push(chunk)
      bytes += chunk.byteLength
      if (chunk.includes(LINE_END) || bytes > maxBytes) {
        this.push(Buffer.concat(chunks))
        chunks = []
        bytes = 0
      }
      done()
    },
  })
}
