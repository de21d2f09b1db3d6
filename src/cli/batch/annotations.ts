/** Errors as annotations in GitHub Actions: workflow commands on standard error, shown at the lines of the manifest. */
import { relative, resolve } from 'node:path'
import { EXIT, type RushesError } from '../../errors.js'
import { isWithin } from '../../host/directories.js'
import { printable } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { variable } from '../settings/table.js'

/** GitHub shows 10 errors of a step. The last one is the exit code. */
export const MAX_LINE_ANNOTATIONS = 9

export interface Annotation {
  readonly title: string
  readonly message: string
  /** A place in the manifest, whose path may be relative to the current folder. */
  readonly at?: { readonly path: string; readonly line: number; readonly column?: number }
}

/** Under `--json` standard error has only JSON, so nothing is annotated. */
export const isActions = ({ env, out }: Pick<Context, 'env' | 'out'>): boolean =>
  variable(env, 'GITHUB_ACTIONS') === 'true' && !out.mode.json

export function annotate(ctx: Context, { title, message, at }: Annotation): void {
  if (!isActions(ctx)) return
  const properties = [
    ...(at === undefined ? [] : [`file=${property(pathInRepository(ctx, at.path) ?? at.path)}`]),
    ...(at === undefined ? [] : [`line=${at.line}`]),
    ...(at?.column === undefined ? [] : [`col=${at.column}`]),
    `title=${property(title)}`,
  ]
  ctx.stderr.write(`::error ${properties.join(',')}::${data(message)}\n`)
}

/** Relative to the root of the repository, with `/`; undefined outside of it. */
export function pathInRepository({ env }: Pick<Context, 'env'>, path: string): string | undefined {
  const root = variable(env, 'GITHUB_WORKSPACE')
  if (root === undefined) return undefined
  const inside = relative(root, resolve(path)).replaceAll('\\', '/')
  return inside === '' || !isWithin(resolve(root), resolve(path)) ? undefined : inside
}

interface Ending {
  readonly code: number
  readonly isCheck: boolean
  /** An error that ended the command before any row. */
  readonly error?: RushesError
}

const MAX_HINT = 1_000

/** The meaning of the exit code, as the last annotation of the step. Nothing for exit code 0. */
export async function annotateExit(ctx: Context, { code, isCheck, error }: Ending): Promise<void> {
  if (code === EXIT.ok || !isActions(ctx)) return
  const meaning =
    isCheck && code === EXIT.runFailed
      ? 'some files are missing or out of date. To create them: rushes batch without --check'
      : await meaningOf(code)
  const reason = error === undefined ? [] : [error.message, error.hint?.slice(0, MAX_HINT) ?? '']
  annotate(ctx, {
    title: `rushes batch: exit code ${code}`,
    message: [...reason, `Exit code ${code}: ${meaning}.`].filter(Boolean).join('\n'),
  })
}

async function meaningOf(code: number): Promise<string> {
  const { EXIT_MEANINGS } = await import('../help/exit-codes.js')
  const names = Object.keys(EXIT) as (keyof typeof EXIT)[]
  const name = names.find((each) => EXIT[each] === code) ?? 'bug'
  const { happened, next } = EXIT_MEANINGS[name]
  return `${happened}. Next: ${next}`
}

/** Line ends would begin another workflow command. */
const data = (text: string): string =>
  text
    .split(/\r?\n/)
    .map((line) => printable(line).replaceAll('%', '%25'))
    .join('%0A')

const property = (text: string): string => data(printable(text)).replaceAll(':', '%3A').replaceAll(',', '%2C')
