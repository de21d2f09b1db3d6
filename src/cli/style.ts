/** Colour: the only use of chalk. One instance a stream, since one may be a terminal and the other a pipe. */
import { Chalk, type ChalkInstance } from 'chalk'
import type { OutputStream } from './io.js'
import { type Env, variable } from './settings.js'

export type Style = ChalkInstance

/** `NO_COLOR` before `FORCE_COLOR`, then whether the stream is a terminal that knows colour. */
export function createStyle(stream: OutputStream, env: Env, { color }: { color: boolean }): Style {
  return new Chalk({ level: levelOf(stream, env, color) })
}

function levelOf(stream: OutputStream, env: Env, color: boolean): 0 | 1 {
  if (!color || variable(env, 'NO_COLOR') !== undefined) return 0
  const force = variable(env, 'FORCE_COLOR')
  if (force !== undefined) return force === '0' || force === 'false' ? 0 : 1
  return stream.isTTY === true && env.TERM !== 'dumb' ? 1 : 0
}
