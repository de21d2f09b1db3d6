// Draws places without ground: space, the sky above the clouds, and abstract shapes.
import { type Colour, hex, mix } from '../colour.js'
import { between, pick, type Random } from '../random.js'
import { cloud, firm, jaggedRidge, misty, smoothRidge } from './land-shapes.js'
import { below, circle, type Land, path, type Stage, svg } from './stage.js'

export function space(stage: Stage, random: Random): Land {
  const { width, height, palette, horizon, light, scale } = stage
  const mist = Array.from({ length: 6 }, (_, index) => {
    const name = `nebula-${index}`
    const shade = hex(pick(random, [palette.accent, palette.second, palette.sky[3]] as const))
    const x = random() * width
    const y = random() * horizon
    return (
      `<radialGradient id="${name}"><stop offset="0" stop-color="${shade}" stop-opacity=".34"/>` +
      `<stop offset="1" stop-color="${shade}" stop-opacity="0"/></radialGradient>` +
      svg`<ellipse cx="${x}" cy="${y}" rx="${between(random, 220, 520)}" ry="${between(random, 120, 300)}"` +
      svg` fill="url(#${name})"/>`
    )
  }).join('')
  const size = between(random, 130, 210) * Math.sqrt(scale)
  const world = planet(light.x, light.y + size * 0.5, size, palette.accent, palette.ink, -light.side)
  const moon = planet(width - light.x, horizon * 0.25, size * 0.22, palette.second, palette.ink, -light.side)
  const line = smoothRidge(random, width, below(stage, 0.45), 50 * scale)
  const craters = Array.from({ length: 12 }, () => {
    const y = below(stage, between(random, 0.52, 0.98))
    const across = (20 + ((y - horizon) / (height - horizon)) * 80) * between(random, 0.5, 1.2)
    const x = random() * width
    const dark = hex(mix(palette.near, palette.front, 0.5))
    return (
      svg`<ellipse cx="${x}" cy="${y}" rx="${across}" ry="${across * 0.24}" fill="${String(dark)}"/><ellipse` +
      svg` cx="${x}" cy="${y + across * 0.07}" rx="${across * 0.9}" ry="${across * 0.17}"` +
      svg` fill="${hex(mix(palette.near, palette.light, 0.08))}"/>`
    )
  }).join('')
  return {
    far: mist + world + moon,
    middle: misty(
      stage,
      'middle',
      jaggedRidge(random, width, below(stage, 0.25), 130 * scale),
      palette.middle,
      0.2,
    ),
    ground: firm(stage, 'ground', line, palette.near) + craters,
    front: '',
  }
}

function planet(x: number, y: number, radius: number, shade: Colour, ink: Colour, dark: number): string {
  const id = `disc-${Math.round(radius)}`
  const bands = [-0.5, -0.1, 0.35].map(
    (at) =>
      svg`<rect x="${x - radius}" y="${y + at * radius}" width="${radius * 2}" height="${radius * 0.17}"` +
      svg` fill="${hex(mix(shade, ink, 0.25))}" fill-opacity=".45"/>`,
  )
  const ring = (side: number) =>
    svg`<path d="M${x - radius * 1.8} ${y}` +
    svg`A${radius * 1.8} ${radius * 0.4} 0 0 ${String(side)} ${x + radius * 1.8} ${y}" fill="none"` +
    svg` stroke="${hex(mix(shade, ink, 0.1))}" stroke-width="${radius * 0.12}" stroke-opacity=".75"` +
    svg` transform="rotate(-14 ${x} ${y})"/>`
  return (
    ring(1) +
    svg`<clipPath id="${id}"><circle cx="${x}" cy="${y}" r="${radius}"/>` +
    svg`</clipPath><g clip-path="url(#${id})">` +
    circle(x, y, radius, hex(shade)) +
    bands.join('') +
    circle(x + dark * radius * 0.55, y + radius * 0.35, radius * 1.12, hex(ink), 0.5) +
    `</g>${ring(0)}`
  )
}

/** Draws the sky above the clouds. */
export function sky(stage: Stage, random: Random): Land {
  const { width, height, palette, scale } = stage
  const bank = (share: number, length: number, shade: Colour, opacity: number) => {
    const y = below(stage, share)
    let drawing = ''
    for (let x = -100; x < width + 100; x += length * between(random, 0.3, 0.5)) {
      drawing += cloud(
        x,
        y + between(random, -14, 14),
        length * between(random, 0.8, 1.3),
        random,
        hex(shade),
        1,
      )
    }
    return (
      svg`<g fill-opacity="${String(opacity)}">${String(drawing)}<rect x="-20" y="${y - 4}"` +
      svg` width="${String(width + 40)}" height="${height + 60 - y}" fill="${hex(shade)}"/></g>`
    )
  }
  const white = mix(palette.near, palette.light, 0.35)
  return {
    far: bank(0.12, 300 * scale, mix(palette.far, palette.sky[3], 0.35), 1),
    middle: bank(0.42, 420 * scale, mix(palette.middle, white, 0.5), 1),
    ground: bank(0.72, 520 * scale, white, 1),
    front: '',
  }
}

export function abstract(stage: Stage, random: Random): Land {
  const { width, height, palette } = stage
  const shades = [
    palette.accent,
    palette.second,
    mix(palette.accent, palette.sky[2], 0.55),
    mix(palette.second, palette.sky[0], 0.45),
    palette.paper,
  ]
  const shadeAt = (index: number) => shades[index % shades.length] ?? palette.accent
  const discs = (count: number, small: number, large: number, from: number) =>
    Array.from({ length: count }, (_, index) => {
      const name = `disc-${from}-${index}`
      const shade = shadeAt(from + index)
      const [x, y, radius] = [
        random() * width,
        between(random, 0.05, 0.8) * height,
        between(random, small, large),
      ]
      const turn = stage.light.side > 0 ? ['1', '0'] : ['0', '1']
      return (
        `<linearGradient id="${name}" x1="${turn[0]}" y1="0" x2="${turn[1]}" y2="1"><stop offset="0"` +
        ` stop-color="${hex(mix(shade, palette.paper, 0.25))}"/><stop offset="1"` +
        ` stop-color="${hex(mix(shade, palette.ink, 0.3))}"/></linearGradient>` +
        circle(x + 10, y + 18, radius, hex(palette.ink), 0.14) +
        circle(x, y, radius, `url(#${name})`)
      )
    }).join('')
  const ribbon = (share: number, index: number) => {
    const line = smoothRidge(random, width, height * share, between(random, 160, 360))
    const name = `ribbon-${index}`
    const shade = shadeAt(index + 1)
    const gradient =
      `<linearGradient id="${name}"><stop offset="0" stop-color="${hex(shade)}"/><stop offset="1"` +
      ` stop-color="${hex(mix(shade, palette.sky[0], 0.6))}"/></linearGradient>`
    const data = line.map(({ x, y }, at) => svg`${String(at === 0 ? 'M' : 'L')}${x} ${y}`).join('')
    return (
      gradient + path(svg`${data}L${width + 20} ${height + 40}L-20 ${height + 40}Z`, `url(#${name})`, 0.92)
    )
  }
  return {
    far: discs(3, 190, 330, 0),
    middle: ribbon(0.62, 0) + discs(3, 60, 150, 2),
    ground: ribbon(0.78, 1) + discs(3, 26, 70, 4),
    front: ribbon(0.97, 2),
  }
}
