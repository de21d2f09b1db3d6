/**
 * Colours and signs of a terminal. Only this file uses chalk. Each stream has its style, because one may be a terminal
 * and the other a pipe.
 */
import { Chalk } from 'chalk'
import { type Env, type OutputStream, variable } from '../process/io.js'

export type Style = InstanceType<typeof Chalk>

/** Creates the style of a stream. `NO_COLOR` overrides `FORCE_COLOR`. Without both, terminals get colour. */
export const createStyle = (stream: OutputStream, env: Env, { color }: { color: boolean }): Style =>
  new Chalk({ level: levelOf(stream, env, color) })

function levelOf(stream: OutputStream, env: Env, color: boolean): 0 | 1 {
  if (!color || variable(env, 'NO_COLOR') !== undefined) return 0
  const force = variable(env, 'FORCE_COLOR')
  if (force !== undefined) return force === '0' || force === 'false' ? 0 : 1
  return stream.isTTY === true && env.TERM !== 'dumb' ? 1 : 0
}
