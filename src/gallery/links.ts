/** Files as the page refers to them. */
import { type posix, win32 } from 'node:path'
import { pathToFileURL } from 'node:url'

type Paths = Pick<typeof posix, 'relative' | 'sep'>

/** The path of a file from the folder of the page, and the same as a URL. */
export function linkTo(
  folder: string,
  path: string,
  paths: Paths,
): { readonly name: string; readonly href: string } {
  const name = paths.relative(folder, path)
  // On another drive of Windows.
  if (win32.isAbsolute(name) && paths === win32)
    return { name, href: pathToFileURL(name, { windows: true }).href }
  const href = name
    .split(paths.sep)
    .map((part) => encodeURIComponent(part.toWellFormed()))
    .join('/')
  return { name, href }
}
