// Northern lights, fireworks and the rainbow, drawn into the sky behind the clouds.
import { hex } from '../colour.js'
import { between, type Random } from '../random.js'
import { circle, path, short } from './drawing.js'
import type { Stage } from './stage.js'

export function drawSpectacle(stage: Stage, random: Random): string {
  if (stage.skyEvent === 'aurora') return aurora(stage, random)
  if (stage.skyEvent === 'fireworks') return fireworks(stage, random)
  return stage.skyEvent === 'rainbow' ? rainbow(stage) : ''
}

/** Curtains that hang from high up: bright along the hem, fading upwards from green to violet. */
function aurora({ width, horizon }: Stage, random: Random): string {
  const curtains = [0.5, 0.66, 0.82].map((share, index) => {
    const phase = random() * 6.28
    const steps = 36
    const tall = horizon * between(random, 0.34, 0.5)
    const hem = (x: number) =>
      horizon *
        (share +
          0.09 * Math.sin((x / width) * 5.2 + phase) +
          0.035 * Math.sin((x / width) * 13 + 2 * phase)) -
      60
    const columns = Array.from({ length: steps }, (_, step) => {
      const left = -20 + ((width + 40) * step) / steps
      const right = -20 + ((width + 40) * (step + 1)) / steps
      const strength = (0.3 + 0.5 * random()) * (1 - 0.16 * index)
      const top = tall * between(random, 0.7, 1.15)
      const data = `M${short(left)} ${short(hem(left))}L${short(right)} ${short(hem(right))}L${short(right)} ${short(hem(right) - top)}L${short(left)} ${short(hem(left) - top)}Z`
      return path(data, 'url(#aurora)', Math.round(strength * 100) / 100)
    })
    return columns.join('')
  })
  return (
    '<linearGradient id="aurora" x1="0" x2="0" y1="1" y2="0"><stop offset="0" stop-color="#7bffb8" stop-opacity="0"/>' +
    '<stop offset=".12" stop-color="#7bffb8" stop-opacity=".62"/><stop offset=".45" stop-color="#35c9a5" stop-opacity=".36"/>' +
    '<stop offset=".75" stop-color="#8a5bd6" stop-opacity=".2"/><stop offset="1" stop-color="#8a5bd6" stop-opacity="0"/></linearGradient>' +
    curtains.join('')
  )
}

function fireworks({ width, horizon, palette, light }: Stage, random: Random): string {
  const shades = [hex(palette.accent), '#ffd166', '#ff6b8a', '#7ee7ff', hex(palette.light)]
  const away = light.side > 0 ? 0.08 : 0.3
  return Array.from({ length: 5 }, (_, burst) => {
    const x = width * (away + (burst + between(random, 0.1, 0.7)) * 0.13)
    const y = horizon * between(random, 0.2, 0.55)
    const reach = between(random, 80, 170)
    const shade = shades[burst] ?? '#ffd166'
    let streaks = ''
    let sparks = ''
    const rays = 26
    for (let ray = 0; ray < rays; ray++) {
      const angle = (6.283 * ray) / rays + random() * 0.12
      const [cos, sin] = [Math.cos(angle), Math.sin(angle)]
      const far = reach * between(random, 0.7, 1)
      const drop = far * 0.14
      streaks += `M${short(x + cos * far * 0.25)} ${short(y + sin * far * 0.25)}L${short(x + cos * far - sin * 2.4)} ${short(y + sin * far + cos * 2.4 + drop)}L${short(x + cos * far + sin * 2.4)} ${short(y + sin * far - cos * 2.4 + drop)}Z`
      sparks += circle(x + cos * far, y + sin * far + drop, between(random, 2.4, 5), shade)
    }
    const glow =
      `<radialGradient id="burst-${burst}"><stop offset="0" stop-color="${shade}" stop-opacity=".45"/><stop offset="1" stop-color="${shade}" stop-opacity="0"/></radialGradient>` +
      circle(x, y, reach * 1.3, `url(#burst-${burst})`)
    return glow + path(streaks, shade, 0.7) + sparks + circle(x, y, 7, hex(palette.paper))
  }).join('')
}

/** Opposite the sun. */
function rainbow({ width, horizon, light }: Stage): string {
  const x = width * (light.side > 0 ? 0.3 : 0.7)
  const outer = Math.min(horizon * 0.88, width * 0.5)
  const band = outer * 0.032
  return ['#e8505b', '#f59a3c', '#ffe066', '#5cc37a', '#4c9be8', '#7a63c9']
    .map((shade, index) => {
      const radius = outer - index * band
      const edge = index === 0 || index === 5 ? 0.3 : 0.48
      return `<circle cx="${short(x)}" cy="${short(horizon)}" r="${short(radius)}" fill="none" stroke="${shade}" stroke-opacity="${edge}" stroke-width="${short(band)}"/>`
    })
    .join('')
}
