/** `rushes doctor`: checks config, address, models, one request, key, disk and journal. It changes nothing and costs nothing. */
import type { Command } from 'commander'
import { onOneLine, printable } from '../../protocol/text.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import type { Finding } from '../doctor/checks.js'
import { wrapWords } from '../terminal/format.js'

export function register(command: Command, { act }: CommandEnvironment): void {
  act(command, doctorCommand)
}

/** Prints each finding as soon as its check is done. */
async function doctorCommand(ctx: Context): Promise<number> {
  const { checkAll, exitCodeFor } = await import('../doctor/checks.js')
  const found: Finding[] = []
  for await (const finding of checkAll(ctx)) {
    found.push(finding)
    print(ctx, finding)
  }
  return exitCodeFor(found)
}

function print({ out }: Context, { check, status, message, advice }: Finding): void {
  if (out.mode.json) {
    out.json({ check, status, message, advice: advice === undefined ? null : onOneLine(advice) })
    return
  }
  const { green, yellow, red, dim } = out.style.out
  const colour = { ok: green, warning: yellow, failed: red, skipped: dim }[status]
  const indent = ' '.repeat(16)
  const room = out.stdoutIsTerminal ? (out.columns || 80) - indent.length : Number.POSITIVE_INFINITY
  const [first = '', ...more] = [message, ...(advice?.split('\n') ?? [])].flatMap((line) =>
    wrapWords(printable(line.trim()), room),
  )
  const label = (status === 'skipped' ? '-' : status).padEnd(8)
  out.line(`${colour(label)}${check.padEnd(7)} ${first}`)
  for (const line of more) out.line(`${indent}${line}`)
}
