/** The data folder of the service: private, and everything under a name that the service chose. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'

export interface DataFolders {
  readonly database: string
  /** Images that came as data: URLs, each named by its SHA-256. */
  readonly inputs: string
  /** `<token>/<file>`: whole outputs only. */
  readonly outputs: string
  /** `<worker>/<run>`: what is being made. */
  readonly work: string
}

export async function makeDataFolders(root: string): Promise<DataFolders> {
  const folders = {
    database: join(root, 'service.db'),
    inputs: join(root, 'inputs'),
    outputs: join(root, 'outputs'),
    work: join(root, 'work'),
  }
  for (const folder of [root, folders.inputs, folders.outputs, folders.work])
    await mkdir(folder, { recursive: true, mode: 0o700 })
  return folders
}
