/** The texts of starting a notebook and opening a job's services. */

import { part } from '../language';

export const notebook = part('notebook', {
  startANotebook: 'Start a notebook',
  writeJobFile: 'write a job file',
  jupyterlabJobPage: 'JupyterLab as a job. Its page opens it once it runs. For more than this, {link}.',
  starting: 'Starting',
  start: 'Start',
  name: 'Name',
  queue: 'Queue',
  jupyterIsIn: 'Jupyter is in',
  nodesOwnEnvironment: "the node's own environment",
  anImage: 'an image',
  environmentNode: 'an environment of the node',
  devices: 'Devices',
  suspendWhenNobody: 'Suspend it when nobody works in it for',
  processors: 'Processors',
  memory: 'Memory',
  limit8gi: 'no limit, or 8Gi',
  folder: 'Folder',
  ownStoragePath: 'its own, or STORAGE/PATH, or /PATH',
  openOf: 'Open {port} of {task}',
  hasEndedLog: '{name} has ended ({state}); its log says why.',
  doesRunYet: '{name} does not run yet ({state}). It is opened when it does.',
  backJob: 'Back to the job',
  programs: { none: '', image: 'Image', environment: 'Folder of the environment' },
  folderNote: 'A folder of its own is kept on this machine while the job is suspended, and goes with the job. A storage stays.',
  idleTimes: { '30m': '30 minutes', '1h': '1 hour', '2h': '2 hours', '8h': '8 hours' },
  never: 'never',
});
