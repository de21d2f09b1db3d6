/** The manifests of examples/, and docs/examples.md. */
import { cpSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
export const PAGE = readFileSync(join(ROOT, 'docs', 'examples.md'), 'utf8')

/** Returns the command blocks of the page that name this manifest. */
export const blocksOf = (manifest: string): readonly string[] =>
  [...PAGE.matchAll(/^```bash\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) =>
    block.includes(manifest) ? [block] : [],
  )

/** Copies the examples without their generated files. */
export function copyTo(folder: string): string {
  const isSource = (path: string) => basename(path) !== 'assets' && !path.endsWith('.lock.json')
  cpSync(join(ROOT, 'examples'), join(folder, 'examples'), { recursive: true, filter: isSource })
  return folder
}
