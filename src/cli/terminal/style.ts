/** Colour: the only use of chalk. One instance for each stream, since one may be a terminal and the other a pipe. */
import type { Env, OutputStream } from '../process/io.js'
import { variable } from '../settings/table.js'

type Paint = (text: string) => string

const PAINTS = ['bold', 'dim', 'green', 'red', 'yellow'] as const

export type Style = { readonly level: number } & Readonly<Record<(typeof PAINTS)[number], Paint>>

/** Without colour, chalk is not loaded. */
const PLAIN: Style = {
  level: 0,
  ...(Object.fromEntries(PAINTS.map((name) => [name, (text: string) => text])) as Record<
    (typeof PAINTS)[number],
    Paint
  >),
}

/** `NO_COLOR` overrides `FORCE_COLOR`; without both, terminals get colour. */
export async function createStyle(
  stream: OutputStream,
  env: Env,
  { color }: { color: boolean },
): Promise<Style> {
  const level = levelOf(stream, env, color)
  if (level === 0) return PLAIN
  const { Chalk } = await import('chalk')
  return new Chalk({ level })
}

function levelOf(stream: OutputStream, env: Env, color: boolean): 0 | 1 {
  if (!color || variable(env, 'NO_COLOR') !== undefined) return 0
  const force = variable(env, 'FORCE_COLOR')
  if (force !== undefined) return force === '0' || force === 'false' ? 0 : 1
  return stream.isTTY === true && env.TERM !== 'dumb' ? 1 : 0
}
