// Computes the size of an output in pixels. The service has checked the input and applied the defaults.

/**
 * Size in pixels. Both sides are even, because H.264 in yuv420p halves them. The rule also applies to pictures, so that
 * a picture and a film of the same ratio match.
 */
export interface Size {
  readonly width: number
  readonly height: number
}

/** A part of the frame, in pixels. */
export interface Area extends Size {
  readonly left: number
  readonly top: number
}

type Input = Readonly<Record<string, unknown>>

/**
 * `basic`: the exact ratio at the size nearest to one megapixel (1:1 is 1024x1024, 16:9 is 1376x774). `high`: the
 * longer side is 3840, and the shorter side is rounded to an even number (21:9 is 3840x1646).
 */
export const imageSize = ({ aspect_ratio, quality }: Input): Size =>
  scaled(aspect_ratio, (across, down) =>
    quality === 'high' ? 3840 / Math.max(across, down) : even(1024 / Math.sqrt(across * down)),
  )

/**
 * Returns the size of a film. The shorter side is 720 at 720p and 1080 at 1080p (9:16 at 720p is 720x1280, 21:9 is
 * 1680x720).
 */
export const videoSize = ({ aspect_ratio, resolution }: Input): Size =>
  scaled(aspect_ratio, (across, down) => (resolution === '1080p' ? 1080 : 720) / Math.min(across, down))

/** `unitOf` returns the pixels of a unit of the ratio. All ratios but one are reduced. */
function scaled(ratio: unknown, unitOf: (across: number, down: number) => number): Size {
  const [across = 1, down = 1] = (ratio === '21:9' ? '7:3' : String(ratio)).split(':').map(Number)
  const unit = unitOf(across, down)
  return { width: even(across * unit), height: even(down * unit) }
}

/** Rounds to an even number. */
const even = (value: number): number => Math.round(value / 2) * 2

/** Puts a picture into the middle of an area. */
export const centred = <Picture extends Size>(
  picture: Picture,
  { left, top, width, height }: Area,
): Picture & Area => ({
  ...picture,
  left: Math.round(left + (width - picture.width) / 2),
  top: Math.round(top + (height - picture.height) / 2),
})
