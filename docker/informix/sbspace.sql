-- The image names this space in SBSPACENAME, and creates it itself only in some versions (README.md).
EXECUTE FUNCTION task('create sbspace', 'sbspace', '/opt/ibm/data/spaces/sbspace1', '20 M', '0');
