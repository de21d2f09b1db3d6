/** Serves one client until it disconnects or a signal comes. */
import { readFile } from 'node:fs/promises'
import { EXIT } from '../../errors.js'
import { untilAborted } from '../../host/abort.js'
import { instructionsFor } from '../../mcp/definitions.js'
import { createMcpServer } from '../../mcp/server.js'
import { connectStdio } from '../../mcp/stdio.js'
import type { Context } from '../context/context.js'
import { asRushesError } from '../process/exit.js'
import { VERSION } from '../process/version.js'
import { errorAnswer } from './run-answers.js'
import { openSession, type SessionOptions } from './session.js'
import { toolsOf } from './tools.js'

/** The exit code: 0 when the client has disconnected. */
export async function serveMcp(ctx: Context, options: SessionOptions): Promise<number> {
  const { out, interrupts, clock } = ctx
  const session = openSession(ctx, options)
  const server = createMcpServer({
    version: VERSION,
    instructions: instructionsFor({ maxRuns: options.maxRuns, isLocal: ctx.globals.local }),
    tools: toolsOf(session),
    clock,
    read: (path) => readFile(path),
    answerOfError: (thrown) => errorAnswer(asRushesError(thrown)),
    log: out.note,
  })
  const stdin = ctx.stdin()
  if (stdin.isTTY === true)
    out.note(
      'An MCP client starts this server and sends it messages on standard input. Press Ctrl-C to stop.',
    )
  const { disconnected } = await connectStdio(server, { stdin, stdout: ctx.stdout, log: out.warn })
  await Promise.race([disconnected, untilAborted(interrupts.first)])
  const reason = interrupts.first.aborted ? interrupts.first.reason : undefined
  await session.close(reason === undefined || reason.by === 'stdout closed' ? 'SIGHUP' : reason.by)
  await server.close()
  return reason?.exitCode ?? EXIT.ok
}
