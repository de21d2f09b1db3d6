/** `rushes doctor`: checks config, address, models, one request, key, disk and journal. It changes nothing and costs nothing. */
import type { Command } from 'commander'
import { onOneLine, printable } from '../../protocol/text.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import type { Finding } from '../doctor/checks.js'
import { wrapWords } from '../terminal/format.js'

export function register(command: Command, { run }: CommandEnvironment, examine = doctorCommand): void {
  command.action(() => run(command, (ctx) => examine(ctx)))
}

/** Prints each finding as soon as its check is done. */
export async function doctorCommand(ctx: Context): Promise<number> {
  const { checkAll, exitCodeFor } = await import('../doctor/checks.js')
  const found: Finding[] = []
  for await (const finding of checkAll(ctx)) {
    found.push(finding)
    print(ctx, finding)
  }
  return exitCodeFor(found)
}

const LABELS = { ok: 'ok', warning: 'warning', failed: 'failed', skipped: '-' } as const

function print({ out }: Context, { check, status, message, advice }: Finding): void {
  if (out.mode.json) {
    out.json({ check, status, message, advice: advice === undefined ? null : onOneLine(advice) })
    return
  }
  const { green, yellow, red, dim } = out.style.out
  const colour = { ok: green, warning: yellow, failed: red, skipped: dim }[status]
  const indent = ' '.repeat(16)
  const wrapped = (text: string) =>
    out.stdoutIsTerminal ? wrapWords(text, (out.columns ?? 80) - indent.length) : [text]
  const [first = '', ...more] = wrapped(printable(message))
  out.line(`${colour(LABELS[status].padEnd(8))}${check.padEnd(7)} ${first}`)
  const advised = (advice?.split('\n') ?? []).flatMap((line) => wrapped(printable(line.trim())))
  for (const line of [...more, ...advised]) out.line(`${indent}${line}`)
}
