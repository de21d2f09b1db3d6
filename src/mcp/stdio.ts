/** The server on standard input and output. */
import type { Readable, Writable } from 'node:stream'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import type { McpServer } from './server.js'

/** Resolves when the server reads. `disconnected` resolves when the client has gone. */
export async function connectStdio(
  server: McpServer,
  stdin: Readable,
  stdout: Writable,
): Promise<{ readonly disconnected: Promise<void> }> {
  await server.connect(new StdioServerTransport(stdin, stdout))
  // The transport itself does not notice the end of its input.
  const ended = new Promise<void>((resolve) => {
    for (const event of ['end', 'close', 'error']) stdin.once(event, () => resolve())
  })
  return { disconnected: Promise.race([ended, server.closed]) }
}
