/** Tests of the real binary run what is built from this very tree. */
import { execFileSync } from 'node:child_process'

export default function setup(): void {
  execFileSync(process.execPath, ['build.mjs'], { stdio: 'inherit' })
}
