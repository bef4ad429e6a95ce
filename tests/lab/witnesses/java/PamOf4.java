import com.informix.jdbc.IfmxPAM;
import com.informix.jdbc.IfxPAMChallenge;
import com.informix.jdbc.IfxPAMResponse;

/** Answers a challenge of PAM with the password that the test chose; for drivers of version 4. */
public final class PamOf4 implements IfmxPAM {
    @Override
    public IfxPAMResponse IfxPAM(IfxPAMChallenge challenge) {
        IfxPAMResponse response = new IfxPAMResponse();
        response.setResponse(System.getProperty("witness.pam"));
        response.setResponseType(challenge.getChallengeType());
        return response;
    }
}
