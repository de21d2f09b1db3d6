// A winding road for a subject that drives.
import { hex, mix } from '../colour.js'
import { path, short } from './drawing.js'
import { below, type Stage } from './stage.js'

const DRIVEN =
  /automobile|taxi|bus|car$|vehicle|truck|engine|ambulance|tractor|motorcycle|bicycle|scooter|rickshaw|biking|skateboard/
const OPEN: ReadonlySet<string> = new Set(['hills', 'mountains', 'desert', 'forest'])

export function drawRoad(stage: Stage, subject: string | undefined): string {
  if (subject === undefined || !DRIVEN.test(subject) || !OPEN.has(stage.place)) return ''
  const { width, height, palette, light } = stage
  const [top, foot] = [below(stage, 0.44), height + 30]
  const shade = hex(mix(palette.front, palette.sky[3], 0.4))
  const side = (offset: number, dash: number) => {
    const points: string[] = []
    for (let step = 0; step <= 40; step++) {
      const near = (step / 40) ** 1.6
      const middle = width * (0.5 + light.side * -0.16 * Math.sin(near * 4.4 + 0.5) * (1.15 - near))
      const half = 8 + near * width * 0.3
      points.push(`${short(middle + offset * half * dash)} ${short(top + near * (foot - top))}`)
    }
    return points
  }
  const [left, right] = [side(-1, 1), side(1, 1)]
  const [from, to] = [side(-1, 0.02), side(1, 0.02)]
  const dashes = Array.from({ length: 10 }, (_, index) => {
    const at = index * 4
    return `M${from[at]}L${from[at + 2]}L${to[at + 2]}L${to[at]}Z`
  })
  return (
    path(`M${left.join('L')}L${right.reverse().join('L')}Z`, shade) +
    path(dashes.join(''), hex(palette.paper), 0.5)
  )
}
