/** Removes temporary files that a killed batch has left beside its outputs and its lock file. */
import { readdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { removeFile, targetOfTemporary } from '../../host/files.js'
import { OPEN, withoutExtension } from '../manifest/outputs.js'
import type { Plan } from '../plan/index.js'

/** Only the holder of the claim may call it. `folder`: of the manifest. */
export async function removeLeftovers({ steps }: Plan, folder: string, lockPath: string): Promise<void> {
  const outputs = steps.flatMap((step) => step.outputs.map(({ name }) => resolve(folder, name)))
  const targets = new Set([resolve(lockPath), ...outputs])
  /** The extension of an open name was known only to the download. */
  const isTarget = (path: string) => targets.has(path) || targets.has(`${withoutExtension(path)}${OPEN}`)
  for (const each of new Set([...targets].map((path) => dirname(path))))
    for (const name of await readdir(each).catch(() => [])) {
      const target = targetOfTemporary(name)
      if (target !== undefined && isTarget(join(each, target)))
        await removeFile(join(each, name)).catch(() => {})
    }
}
