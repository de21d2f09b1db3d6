/** Builds this tree for the tests of the real binary. */
import { execFileSync } from 'node:child_process'

export default function setup(): void {
  execFileSync(process.execPath, ['deploy/build.mjs'], { stdio: 'inherit' })
}
