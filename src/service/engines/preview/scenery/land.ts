// What every place is made of.
import { type Colour, hex, mix } from '../colour.js'
import { fade, ground, type Point } from './drawing.js'
import type { Stage } from './stage.js'

/** The three drawings, and the line the subject stands on. */
export interface Land {
  readonly far: string
  readonly middle: string
  readonly near: string
  readonly stand: readonly Point[]
}

/** Land that pales towards its foot, as if mist lay there: what separates one plane from the next. */
export function misty(stage: Stage, name: string, line: readonly Point[], shade: Colour): string {
  const top = Math.min(...line.map(({ y }) => y))
  const pale = hex(mix(shade, stage.palette.skyLow, 0.38))
  return (
    fade(`mist-${name}`, top, top + 420, [
      [0, hex(shade)],
      [1, pale],
    ]) + ground(line, stage.height + 40, `url(#mist-${name})`)
  )
}

/** A height below the horizon, as a share of what lies below it. */
export function below(stage: Stage, share: number): number {
  return stage.horizon + (stage.height - stage.horizon) * share
}
