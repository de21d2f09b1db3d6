/** The server on standard input and output. */
import { pipeline, type Readable, type Writable } from 'node:stream'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { ErrorCode } from '@modelcontextprotocol/sdk/types.js'
import { createMessageLimit, MAX_MESSAGE_BYTES } from './message-limit.js'
import type { McpServer } from './server.js'

const TOO_LONG = `The message is larger than ${MAX_MESSAGE_BYTES / 1024 / 1024} MiB and was not read. Nothing was sent. Pass images as paths, not as data: URLs.`

/** Resolves when the server reads. `disconnected` resolves when the client has gone. */
export async function connectStdio(
  server: McpServer,
  { stdin, stdout, log }: { readonly stdin: Readable; readonly stdout: Writable; log(text: string): void },
): Promise<{ readonly disconnected: Promise<void> }> {
  const messages = createMessageLimit({
    onTooLong(id) {
      log(`Protocol error: ${TOO_LONG}`)
      const error = { code: ErrorCode.InvalidRequest, message: TOO_LONG }
      if (id !== undefined) stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, error })}\n`)
    },
  })
  await server.connect(
    new StdioServerTransport(messages, stdout, { maxBufferSize: Number.POSITIVE_INFINITY }),
  )
  // The transport itself does not notice the end of its input.
  const ended = new Promise<void>((resolve) => void pipeline(stdin, messages, () => resolve()))
  return { disconnected: Promise.race([ended, server.closed]) }
}
