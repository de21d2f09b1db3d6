// One light for everyone: a picture of the set is drawn for a white page, so its colours are multiplied with the
// scene's light, air is laid over it when it is far away, and its edge towards the light is lit.
import { type Colour, hex } from '../colour.js'
import type { Palette } from '../palette.js'
import { short } from './drawing.js'
import type { Light } from './stage.js'

/**
 * A filter named `id` for drawings of about `size` stage units. `air` 0 to 1 is how much of the haze lies before it;
 * `near` says whether its edge shows the light.
 */
export function lightFilter(id: string, palette: Palette, light: Light, size: number, air: number): string {
  const ambient = channels(palette.ambient)
  const haze = channels(palette.far)
  const rows = ambient.map((gain, index) => {
    const mixed = palette.isMonochrome ? LUMA : [0, 1, 2].map((channel) => (channel === index ? 1 : 0))
    const row = [...mixed.map((share) => share * gain * (1 - air)), 0, air * (haze[index] ?? 0)]
    return row.map((value) => value.toFixed(3)).join(' ')
  })
  const low = palette.hour === 'dusk' || palette.hour === 'dawn' || palette.hour === 'night'
  const rim = size * (low ? 0.016 : 0.011)
  const shade = size * 0.07
  const opacity = palette.hour === 'grey' ? 0.22 : low ? 0.85 : 0.5
  return (
    `<filter id="${id}" x="-.06" y="-.06" width="1.12" height="1.12" color-interpolation-filters="sRGB">` +
    `<feColorMatrix in="SourceGraphic" values="${rows.join(' ')} 0 0 0 1 0" result="lit"/>` +
    crescent('shaded', short(light.side * shade), short(-shade * 0.5), hex(palette.front), low ? 0.36 : 0.2) +
    crescent('rim', short(-light.side * rim), short(rim * 0.8), hex(palette.light), opacity * (1 - air)) +
    `<feMerge><feMergeNode in="lit"/><feMergeNode in="shaded"/><feMergeNode in="rim"/></feMerge></filter>`
  )
}

/** How bright red, green and blue are to the eye (BT.709). */
const LUMA = [0.2126, 0.7152, 0.0722]

/** What of a drawing is not covered by the same drawing moved a little: its edge on one side. */
function crescent(name: string, dx: string, dy: string, shade: string, opacity: number): string {
  return (
    `<feOffset in="SourceAlpha" dx="${dx}" dy="${dy}" result="${name}-moved"/>` +
    `<feComposite in="SourceAlpha" in2="${name}-moved" operator="out" result="${name}-edge"/>` +
    `<feFlood flood-color="${shade}" flood-opacity="${opacity.toFixed(2)}"/>` +
    `<feComposite in2="${name}-edge" operator="in" result="${name}"/>`
  )
}

/** A filter that leaves only the shape, in one colour. */
export function shadowFilter(id: string, shade: Colour, opacity: number, blur: number): string {
  return (
    `<filter id="${id}" x="-.1" y="-.1" width="1.2" height="1.2" color-interpolation-filters="sRGB">` +
    `<feFlood flood-color="${hex(shade)}" flood-opacity="${opacity}"/><feComposite in2="SourceAlpha" operator="in"/>` +
    `<feGaussianBlur stdDeviation="${short(blur)}"/></filter>`
  )
}

function channels(shade: Colour): number[] {
  const text = hex(shade)
  return [1, 3, 5].map((at) => Number.parseInt(text.slice(at, at + 2), 16) / 255)
}
