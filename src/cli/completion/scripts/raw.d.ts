/** A file as text: `import text from './name.sh?raw'`. The build and the tests both know it. */
declare module '*?raw' {
  const text: string
  export default text
}
