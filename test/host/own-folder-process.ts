/** What the tests of own folders do as another user, in a namespace, or at the same time: `own-folder-process <deed> <path> [other]`. */
import { renameSync, symlinkSync, unlinkSync } from 'node:fs'
import { FolderNotRemoved, holdFolder, removeFolder } from '../../src/host/own-folder.js'

const [, , deed = '', path = '', other = ''] = process.argv

const deeds: Readonly<Record<string, () => Promise<void> | void>> = {
  remove: () => removeFolder(path),
  /** Everything that a caller does with a folder of its own. */
  async use() {
    const folder = await holdFolder(path)
    const names = await folder.names()
    for (const name of names) await folder.takeFile(name)
    for (const name of names) await (await folder.openFile(name)).close()
    await folder.remove()
  },
  /** Puts a link to another folder in place of this one and back, until it is killed. */
  swap() {
    process.stdout.write('swapping\n')
    for (;;)
      try {
        renameSync(path, `${path}-aside`)
        symlinkSync(other, path)
        unlinkSync(path)
        renameSync(`${path}-aside`, path)
      } catch {
        // It was removed at this moment.
      }
  },
}

try {
  await deeds[deed]?.()
  process.stdout.write('done\n')
} catch (error) {
  const cause = error instanceof FolderNotRemoved ? '' : ` (${(error as Error).name})`
  process.stdout.write(`${(error as Error).message}${cause}\n`)
}
