export const FIGURES: {
  readonly notice: string
  /**
   * Icons by name: the emoji's code points in hexadecimal, joined by hyphens, and SVG elements in a box of 32
   * x 32.
   */
  readonly icons: Readonly<Record<string, readonly [codes: string, body: string] | undefined>>
}
export function figuresAtBuild(): { name: string; load: object }
