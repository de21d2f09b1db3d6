/** Runs `rushes mcp` in process, with the client of the SDK on its standard streams and a manual clock. */
import { PassThrough } from 'node:stream'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { main } from '../../src/cli/main.js'
import type { Fetch } from '../../src/host/http.js'
import { createInterrupts, type InterruptSource } from '../../src/host/interrupts.js'
import { whenOver } from './after-file.js'
import { type CliService, homeEnvironment } from './cli.js'
import { temporaryFolder } from './temporary-folder.js'

export interface McpOptions {
  readonly words?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly folder?: string
  readonly fetch?: Fetch
}

export interface ToolResult {
  readonly text: string
  readonly isError: boolean
  // biome-ignore lint/suspicious/noExplicitAny: the tests look into results of every shape
  readonly structured: any
  /** Its runs, the first of them, and its error. */
  readonly runs: ToolResult['structured']
  readonly run: ToolResult['structured']
  readonly error: ToolResult['structured']
  readonly content: CallToolResult['content']
}

export interface McpProcess {
  readonly folder: string
  readonly client: Client
  readonly interrupts: InterruptSource
  /** The raw streams, for a client that violates the protocol. */
  readonly stdin: PassThrough
  readonly stderr: () => string
  readonly ended: Promise<number>
  /** Calls a tool, and advances the clock until it has answered. */
  call(name: string, args?: Readonly<Record<string, unknown>>): Promise<ToolResult>
  /** Calls a tool without advancing the clock. */
  begin(
    name: string,
    args?: Readonly<Record<string, unknown>>,
    options?: { signal?: AbortSignal; onprogress?(progress: object): void },
  ): Promise<ToolResult>
  /** Disconnects the client. Returns the exit code. */
  end(): Promise<number>
}

export async function openMcp(service: CliService, options: McpOptions = {}): Promise<McpProcess> {
  const { words = [], folder = temporaryFolder(), fetch = service.counting } = options
  const { clock, home } = service
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
  let printed = ''
  stderr.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  const interrupts = createInterrupts()
  const ended = main({
    argv: ['mcp', '--folder', folder, ...words],
    env: { ...homeEnvironment(home), ...service.env, ...options.env },
    stdin: () => stdin,
    stdout,
    stderr,
    interrupts,
    parts: { clock, random: () => 0.5, fetch },
  })
  const client = new Client({ name: 'test', version: '1' })
  // The transport of a server reads and writes streams, so the client can use it too.
  await clock.runUntil(client.connect(new StdioServerTransport(stdout, stdin)))
  await clock.runUntil(client.listTools())
  const end = () => {
    stdin.end()
    return clock.runUntil(ended)
  }
  whenOver(end)
  const begin: McpProcess['begin'] = async (name, args = {}, more = {}) =>
    resultOf((await client.callTool({ name, arguments: args }, undefined, more as never)) as CallToolResult)
  return {
    folder,
    client,
    interrupts,
    stdin,
    stderr: () => printed,
    ended,
    begin,
    call: (name, args) => clock.runUntil(begin(name, args)),
    end,
  }
}

export function resultOf({ content, structuredContent, isError }: CallToolResult): ToolResult {
  const structured: ToolResult['structured'] = structuredContent
  return {
    text: content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n'),
    structured,
    runs: structured?.runs,
    run: structured?.runs?.[0],
    error: structured?.error,
    isError: isError === true,
    content,
  }
}
